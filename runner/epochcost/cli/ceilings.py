"""`epochcost ceilings`: what this machine does at most, measured and kept for its roofline."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from epochcost.cli import terminal
from epochcost.cli.terminal import RESULTS, print_json, print_table
from epochcost.errors import EpochcostError
from epochcost.measure.ceilings import ceilings_here
from epochcost.measure.environment import detect_environment
from epochcost.results.ceilings import Ceilings, MeasuredRate
from epochcost.results.plausibility import require_plausible
from epochcost.specs.hardware import Hardware
from epochcost.specs.loader import load_catalogue
from epochcost.units import scientific

WithCeilings = Annotated[
    bool,
    typer.Option(
        "--ceilings/--no-ceilings",
        help="At the end, what the CPU does at most, where it is not known: some seconds.",
    ),
]


def ceilings(
    *,
    hardware: terminal.HardwareId = "local",
    as_is: terminal.AsIs = False,
    results: terminal.ResultsFolder = RESULTS,
    output: terminal.OutputFormat = "text",
) -> None:
    """Measure what this machine's CPU does at most: a product of matrices, a copy of memory."""
    machine = load_catalogue(Path()).machine(hardware)
    require_plausible(machine, detect_environment(), as_is=as_is)
    measured, _ = ceilings_here(machine, results, again=True)
    if output == "json":
        print_json(measured.model_dump(mode="json"), indent=1)
    else:
        _show(measured)


def measure_missing_ceilings(machine: Hardware, results: Path) -> None:
    """At the end of a run, and said in a line; that they cannot be measured fails no trial."""
    try:
        measured, new = ceilings_here(machine, results, again=False)
    except EpochcostError as error:
        typer.echo(f"ceilings: {error}", err=True)
        return
    if new:
        flops = scientific(measured.highest_flops.median)
        copied = scientific(measured.highest_copy_bytes.median)
        typer.echo(f"ceilings of the CPU: {flops} FLOP/s, {copied} bytes/s copied", err=True)


def _show(measured: Ceilings) -> None:
    print_table(
        ("threads", "product of matrices, GFLOP/s", "copy of memory, GB/s"),
        [
            (str(one.threads), _words(one.flops), _words(one.copy_bytes))
            for one in measured.ceilings
        ],
    )


def _words(rate: MeasuredRate) -> str:
    """In thousands of millions a second: the median, the lowest and the highest."""
    low, middle, high = (value / 1e9 for value in (rate.low, rate.median, rate.high))
    return f"{middle:.4g} ({low:.4g} to {high:.4g})"
