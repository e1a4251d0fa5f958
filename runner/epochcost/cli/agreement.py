"""What a run in another precision keeps of fp32, under the table of its times."""

from __future__ import annotations

from collections.abc import Iterable

from epochcost.cli.tables import print_table
from epochcost.results.records import Agreement, OutputDifference, Result


def show_agreements(results: Iterable[Result]) -> None:
    """A row for each output that was compared with fp32; nothing where none was."""
    found = [
        (one, agreement, output)
        for one in results
        if (agreement := one.measurement.agreement) is not None
        for output in agreement.outputs
    ]
    if found:
        print_table(
            ("against fp32", "output", "of its norm", "at most", "largest changed"),
            [_row(*each) for each in found],
        )


def _row(result: Result, agreement: Agreement, output: OutputDifference) -> tuple[str, ...]:
    made = f", {agreement.quantization}" if agreement.quantization else ""
    relative, changed = output.relative_to_norm, output.largest_changed
    return (
        f"{result.trial.title}{made}",
        output.output,
        "-" if relative is None else f"{relative:.2%}",
        f"{output.maximum_absolute:.3g}",
        "-" if changed is None else f"{changed:.1%}",
    )
