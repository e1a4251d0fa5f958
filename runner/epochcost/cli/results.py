"""`epochcost results`: import runs of other benchmarking tools, and show token costs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from epochcost.analysis.reported import ReportedRow, reported_rows
from epochcost.cli.bundled import inputs_to_read, own_catalogue
from epochcost.cli.terminal import RESULTS, ResultsFolder, WideTable, ids, print_table, say
from epochcost.cost.estimate import Cost, Estimate
from epochcost.errors import InputError
from epochcost.results.reported import Terms, reported_runs
from epochcost.results.store import write_sidecar
from epochcost.units import money, parse_decimal, render_count, seconds, significant_places

app = typer.Typer(no_args_is_help=True, help="Import results of other benchmarking tools.")
_HEADER = (
    "machine", "load", "a million tokens", "read", "written", "first token", "90 % below",
    "a token", "price", "measured by",
)  # fmt: skip
_DROP = ("measured by", "90 % below", "price", "read", "a token", "first token")
_DIGITS = 5


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The tool's JSON file.")],
    *,
    model: Annotated[
        str, typer.Option(help="Id of the served decoder.", autocompletion=ids("models"))
    ],
    hardware: Annotated[
        str, typer.Option(help="Id of the kind of machine.", autocompletion=ids("hardware"))
    ],
    price: Annotated[
        str | None, typer.Option(help="Id of your price plan.", autocompletion=ids("prices"))
    ] = None,
    rate: Annotated[str | None, typer.Option(help="Your price of a GPU-hour in USD: 2.31.")] = None,
    gpus: Annotated[int | None, typer.Option(min=1, help="Number of GPUs that served.")] = None,
    machines: Annotated[
        int | None, typer.Option(min=1, help="Number of machines with these GPUs.")
    ] = None,
    software: Annotated[str, typer.Option(help="The serving software: vLLM 0.22.")] = "",
    precision: Annotated[str, typer.Option(help="The precision of the weights: fp8.")] = "",
    results: ResultsFolder = RESULTS,
    wide: WideTable = False,
) -> None:
    """Import a run of vLLM's bench serve, GuideLLM, AIPerf or InferenceX.

    Example: epochcost results import serve.json --model smollm2-135m --hardware g6.xlarge
    """
    catalogue, gpu_hour = own_catalogue(), None if rate is None else parse_decimal(rate, "rate")
    if gpu_hour is not None and (gpu_hour <= 0 or price is not None):
        raise InputError(f"--rate {rate}: expected a price above 0, without --price")
    terms = Terms(
        gpus=gpus,
        machines=machines,
        price=price,
        gpu_hour=gpu_hour,
        software=software,
        precision=precision,
    )
    records = reported_runs(catalogue, file, model, hardware, terms)
    paths = [write_sidecar(results, record) for record in records]
    inputs = inputs_to_read(results, catalogue)
    rows = [row for row in reported_rows(inputs, model) if row.record in records]
    show_reported(rows, wide=wide)
    say(f"Reported by you, {render_count(len(paths), 'run')} of {model} in {paths[0].parent}")


def show_reported(rows: Sequence[ReportedRow], *, wide: bool) -> None:
    """Print a table of runs that other tools reported, then the reasons to doubt each run."""
    print_table(_HEADER, [_cells(row) for row in rows], drop=_DROP, wide=wide)
    for row in rows:
        for doubt in row.doubts:
            say(f"doubt: {row.place}, {row.run.load_text}: {doubt}")


def _cells(row: ReportedRow) -> tuple[str, ...]:
    costs = (row.per_million, row.per_million_read, row.per_million_written)
    times = (row.run.first.p50, row.run.first.p90, row.run.token.p50)
    return (
        row.place,
        row.run.load_text,
        *map(_amount, costs),
        *("-" if time is None else seconds(time) for time in times),
        row.plan,
        row.software,
    )


def _amount(cost: Cost) -> str:
    if not isinstance(cost, Estimate):
        return "-"
    return money(cost.mean, cost.currency, significant_places(cost.mean, _DIGITS))
