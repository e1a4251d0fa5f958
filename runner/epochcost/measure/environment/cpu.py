"""The CPU: its name, how it is built, and what governs its clock."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from pathlib import Path

from epochcost.measure.environment.commands import output
from epochcost.measure.kernel_files import read_number, read_text
from epochcost.results.records import Processor

_CPUINFO = Path("/proc/cpuinfo")
SYSTEM = Path("/sys/devices/system")
_HERTZ_PER_KILOHERTZ = 1000


def cpu_model(cpuinfo: Path = _CPUINFO) -> str | None:
    """The name that the CPU gives itself."""
    lines = (read_text(cpuinfo) or "").splitlines()
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    apple = output("sysctl", "-n", "machdep.cpu.brand_string") if not lines else None
    return _first(next(named, None), apple, _lscpu_model(), platform.processor())


def _lscpu_model() -> str | None:
    """Ask lscpu, which knows the names of Arm cores that /proc/cpuinfo gives as numbers."""
    for line in (output("lscpu") or "").splitlines():
        if line.startswith("Model name:"):
            return line.partition(":")[2].strip()
    return None


def _first(*candidates: str | None) -> str | None:
    return next((text for text in candidates if text), None)


def usable_cpus() -> int:
    """Count the logical CPUs that this process may run on."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def processor(system: Path = SYSTEM) -> Processor:
    """Read sockets, NUMA nodes, governor, limits of the frequency and turbo.

    The kernel's admin-guide, cpufreq: ``scaling_*_freq`` are in kHz, ``boost`` is 1 and Intel's
    ``no_turbo`` 0 where the clock may exceed its base.
    """
    lowest = list(_numbers(system, "cpufreq/scaling_min_freq"))
    highest = list(_numbers(system, "cpufreq/scaling_max_freq"))
    governors = {read_text(file) for file in _each_cpu(system, "cpufreq/scaling_governor")}
    return Processor(
        sockets=len(set(_numbers(system, "topology/physical_package_id"))) or None,
        numa_nodes=len(list(system.glob("node/node[0-9]*"))) or None,
        governor=", ".join(sorted(filter(None, governors))) or None,
        lowest_frequency_hertz=min(lowest) * _HERTZ_PER_KILOHERTZ if lowest else None,
        highest_frequency_hertz=max(highest) * _HERTZ_PER_KILOHERTZ if highest else None,
        turbo=_turbo(system),
    )


def _turbo(system: Path) -> bool | None:
    forbidden = read_number(system / "cpu/intel_pstate/no_turbo")
    if forbidden is not None:
        return forbidden == 0
    boost = read_number(system / "cpu/cpufreq/boost")
    return None if boost is None else boost == 1


def _numbers(system: Path, name: str) -> Iterator[int]:
    for file in _each_cpu(system, name):
        number = read_number(file)
        if number is not None:
            yield number


def _each_cpu(system: Path, name: str) -> Iterator[Path]:
    return system.glob(f"cpu/cpu[0-9]*/{name}")


def throttle_count(system: Path = SYSTEM) -> int | None:
    """How often heat has lowered the clock since the machine's start; None where none counts.

    The counts of all cores and packages together: Intel's ``thermal_throttle``.
    """
    cores = list(_numbers(system, "thermal_throttle/core_throttle_count"))
    packages = list(_numbers(system, "thermal_throttle/package_throttle_count"))
    return sum(cores) + sum(packages) if cores or packages else None
