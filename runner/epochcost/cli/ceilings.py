"""`epochcost ceilings`: measure and store this machine's peak FLOP/s and bytes/s (its roofline)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from epochcost.cli import terminal
from epochcost.cli.bundled import own_catalogue
from epochcost.cli.terminal import RESULTS, print_table
from epochcost.errors import EpochcostError, UsageError
from epochcost.execute.patience import disturbance, look_at_host
from epochcost.measure.ceilings import ceilings_here
from epochcost.measure.environment import detect_environment
from epochcost.measure.runtime import require_cuda
from epochcost.results.ceilings import Ceilings, MeasuredRate
from epochcost.results.plausibility import require_plausible
from epochcost.specs.hardware import Hardware
from epochcost.specs.study import Provider
from epochcost.units import scientific


def ceilings(
    *,
    hardware: terminal.HardwareId = "local",
    provider: Annotated[Provider, typer.Option(help="The execution provider.")] = "cpu",
    device: Annotated[int, typer.Option(min=0, help="CUDA's number of the GPU.")] = 0,
    as_is: terminal.AsIs = False,
    results: terminal.ResultsFolder = RESULTS,
) -> None:
    """Measure this machine's highest rates of arithmetic and of memory traffic.

    The rates are the ceilings of the machine's roofline.

    Example: epochcost ceilings --hardware local
    """
    if provider == "cpu" and device:
        raise UsageError("--device: cannot be combined with --provider cpu, which uses no GPU")
    machine = own_catalogue().machine(hardware)
    require_plausible(machine, detect_environment(), as_is=as_is)
    if provider == "cuda":
        require_cuda(device)
    measured, _ = ceilings_here(machine, results, provider, again=True, device=device)
    if measured.ceilings:
        print_table(
            ("threads", "precision", "product of matrices, GFLOP/s", "copy of memory, GB/s"),
            [
                (
                    str(rate.threads),
                    rate.precision,
                    _median_with_range(rate.flops),
                    _median_with_range(rate.copy_bytes),
                )
                for rate in measured.ceilings
            ],
        )
    _warn_if_busy(machine, provider, device, measured)


def measure_missing_ceilings(
    machine: Hardware, results: Path, provider: Provider, device: int
) -> None:
    """After a run, measure and print peak rates if none are stored; errors do not fail the run."""
    try:
        measured, new = ceilings_here(machine, results, provider, again=False, device=device)
    except (EpochcostError, OSError) as error:
        typer.echo(f"ceilings: {error}", err=True)
        return
    if new:
        flops = max(rate.flops.high for rate in measured.ceilings if rate.precision == "fp32")
        copied = max(rate.copy_bytes.high for rate in measured.ceilings)
        rates = f"{scientific(flops)} FLOP/s, {scientific(copied)} bytes/s copied"
        typer.echo(f"ceilings of {provider}: {rates}", err=True)
        _warn_if_busy(machine, provider, device, measured)


def _warn_if_busy(machine: Hardware, provider: Provider, device: int, measured: Ceilings) -> None:
    if reason := disturbance(look_at_host(), measured.environment.logical_cpus):
        again = f"epochcost ceilings --hardware {machine.id} --provider {provider}"
        again += f" --device {device}" if device else ""
        typer.echo(
            f"the ceilings may be too low, because {reason}: `{again}` measures them again when "
            "the machine is idle",
            err=True,
        )


def _median_with_range(rate: MeasuredRate) -> str:
    """Format a rate's median and range, in units of 10⁹ per second."""
    low, middle, high = (value / 1e9 for value in (rate.low, rate.median, rate.high))
    return f"{middle:.4g} ({low:.4g} to {high:.4g})"
