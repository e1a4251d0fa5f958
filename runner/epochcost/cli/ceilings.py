"""`epochcost ceilings`: what this machine does at most, measured and kept for its roofline.

And its anchors, from which times of works that it never ran are predicted.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from epochcost.analysis.arithmetic import BYTES_PER_NUMBER
from epochcost.cli import terminal
from epochcost.cli.bundled import own_catalogue
from epochcost.cli.terminal import RESULTS, print_json, print_table
from epochcost.cost.flops import PASSES_PER_STEP
from epochcost.errors import EpochcostError
from epochcost.execute.anchors import measure_anchors
from epochcost.measure.ceilings import ceilings_here
from epochcost.measure.environment import detect_environment
from epochcost.results.ceilings import Anchor, Ceilings, MeasuredRate
from epochcost.results.plausibility import require_plausible
from epochcost.specs.hardware import Hardware
from epochcost.specs.study import Provider
from epochcost.units import scientific, seconds

WithCeilings = Annotated[
    bool,
    typer.Option(
        "--ceilings/--no-ceilings",
        help="At the end, what the machine does at most and how fast some small works are, where "
        "it is not known: up to a minute.",
    ),
]


def ceilings(
    *,
    hardware: terminal.HardwareId = "local",
    provider: Annotated[Provider, typer.Option(help="The execution provider.")] = "cpu",
    device: Annotated[int, typer.Option(min=0, help="The GPU by CUDA's number.")] = 0,
    as_is: terminal.AsIs = False,
    results: terminal.ResultsFolder = RESULTS,
    output: terminal.OutputFormat = "text",
) -> None:
    """Measure what this machine does at most, for predictions.

    Example: epochcost ceilings --hardware local
    """
    machine = own_catalogue().machine(hardware)
    require_plausible(machine, detect_environment(), as_is=as_is)
    measured, _ = _here(machine, results, provider, device, again=True)
    if output == "json":
        print_json(measured.model_dump(mode="json"))
    else:
        _show(measured)


def measure_missing_ceilings(
    machine: Hardware, results: Path, provider: Provider, device: int
) -> None:
    """At the end of a run, and said in a line; that they cannot be measured fails no trial."""
    try:
        measured, new = _here(machine, results, provider, device, again=False)
    except (EpochcostError, OSError) as error:
        typer.echo(f"ceilings: {error}", err=True)
        return
    if new:
        words = [f"{len(measured.anchors)} small models timed"]
        if measured.ceilings:
            words += [f"{scientific(measured.highest_flops.median)} FLOP/s"]
            words += [f"{scientific(measured.highest_copy_bytes.median)} bytes/s copied"]
        typer.echo(f"ceilings of {provider}: {', '.join(words)}", err=True)


def _here(
    machine: Hardware, results: Path, provider: Provider, device: int, *, again: bool
) -> tuple[Ceilings, bool]:
    def anchors() -> tuple[Anchor, ...]:
        typer.echo("timing small models, to predict other times: up to a minute", err=True)
        return measure_anchors(results / machine.id, provider, device)

    return ceilings_here(machine, results, provider, anchors, again=again, device=device)


def _show(measured: Ceilings) -> None:
    if measured.ceilings:
        print_table(
            ("threads", "precision", "product of matrices, GFLOP/s", "copy of memory, GB/s"),
            [
                (str(one.threads), one.precision, _words(one.flops), _words(one.copy_bytes))
                for one in measured.ceilings
            ],
        )
        typer.echo()
    header = ("small work", "mode", "batch", "step", "GFLOP/s", "GB/s")
    print_table(header, [_row(one) for one in measured.anchors])


def _row(anchor: Anchor) -> tuple[str, ...]:
    """Rates of arithmetic and of numbers moved, as counted from the graph."""
    asked, passes = anchor.profile, PASSES_PER_STEP if anchor.mode == "training" else 1
    moved_bytes = BYTES_PER_NUMBER * (asked.moved + asked.moved_by_others)
    rates = (passes * anchor.examples_per_second * one / 1e9 for one in (asked.flops, moved_bytes))
    step = seconds(anchor.batch_size / anchor.examples_per_second)
    return anchor.work, anchor.mode, str(anchor.batch_size), step, *(f"{one:.4g}" for one in rates)


def _words(rate: MeasuredRate) -> str:
    """In thousands of millions a second: the median, the lowest and the highest."""
    low, middle, high = (value / 1e9 for value in (rate.low, rate.median, rate.high))
    return f"{middle:.4g} ({low:.4g} to {high:.4g})"
