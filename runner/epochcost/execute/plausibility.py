"""Whether the machine at hand can be the one that it is said to be.

A figure stored under another machine's name would be priced wrongly for ever; what a kernel can
tell (CPUs, GPUs) is therefore compared with the spec before anything is measured.
"""

from __future__ import annotations

from collections.abc import Iterator

from epochcost.errors import InputError
from epochcost.results.records import Environment
from epochcost.specs.hardware import Hardware


def require_plausible(hardware: Hardware, environment: Environment) -> None:
    """Raise InputError where spec and machine contradict each other; ``detected`` fits any."""
    contradictions = [] if hardware.detected else list(_contradictions(hardware, environment))
    if contradictions:
        raise InputError(
            f"--hardware {hardware.id}: demanded {hardware.name}; this machine has "
            f"{'; '.join(contradictions)}: run on that machine, or leave --hardware out to measure "
            "this one as `local`"
        )


def _contradictions(hardware: Hardware, environment: Environment) -> Iterator[str]:
    if hardware.vcpus is not None and environment.logical_cpus != hardware.vcpus:
        yield f"{environment.logical_cpus} logical CPUs, not {hardware.vcpus}"
    demanded = sum(accelerator.count for accelerator in hardware.accelerators)
    if len(environment.gpus) != demanded:
        yield f"{len(environment.gpus)} GPUs, not {demanded}"
