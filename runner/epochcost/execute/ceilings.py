"""The ceilings of this machine: measured where none are kept of it, and kept beside its results.

Timing is left to ``measure.ceilings``, the record to ``results.ceilings``, and whether what
somebody hands in can be true to ``results.submissions``.
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path

from epochcost.measure.ceilings import MOST_COPIED_BYTES, measured_apart
from epochcost.measure.environment import detect
from epochcost.measure.memory import memory_limit_bytes
from epochcost.results.ceilings import (
    CEILINGS_VERSION,
    FOLDER,
    Ceilings,
    find_ceilings,
    write_ceilings,
)
from epochcost.results.environment import Environment
from epochcost.results.files import exclusive, require_writable
from epochcost.results.plausibility import contradictions
from epochcost.specs.hardware import Hardware

# What is copied and its copy take a quarter of a small machine's memory.
_SHARE_OF_MEMORY = 8


def ceilings_here(hardware: Hardware, folder: Path, *, again: bool) -> tuple[Ceilings, bool]:
    """What this host's CPU does at most, as ``hardware``, and whether it was measured just now.

    It is kept below ``folder`` as soon as it is whole, and measured where this host has none
    under this runtime, or ``again``. Raises CapabilityError where it cannot be measured or kept,
    or another run measures into the same folder.
    """
    environment = detect()
    kept = None if again else find_ceilings(folder, hardware.id, "cpu", environment)
    if kept is not None:
        return kept, False
    require_writable(folder / hardware.id / FOLDER)
    with exclusive(folder / hardware.id):
        measured = _measured(hardware, environment)
        write_ceilings(folder, measured)
    return measured, True


def _measured(hardware: Hardware, environment: Environment) -> Ceilings:
    begun = dt.datetime.now(dt.UTC)
    copied = min(MOST_COPIED_BYTES, memory_limit_bytes() // _SHARE_OF_MEMORY)
    return Ceilings(
        ceilings_version=CEILINGS_VERSION,
        hardware=hardware.id,
        provider="cpu",
        measured_at=begun,
        ceilings=measured_apart(copied, _thread_counts(environment)),
        environment=environment,
        contradictions=contradictions(hardware, environment),
    )


def _thread_counts(environment: Environment) -> tuple[int, ...]:
    """One, one a core, and one a CPU: two threads of a core share its units."""
    cores = environment.physical_cores or environment.logical_cpus
    return tuple(sorted({1, min(cores, environment.logical_cpus), environment.logical_cpus}))
