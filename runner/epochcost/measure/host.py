"""Measure disturbances of a trial: other programs, the hypervisor, CPU quotas and heat."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from epochcost.measure.cpu import SYSTEM, ControlGroups, parse_cpu_list, read_text, throttle_count
from epochcost.results.environment import Conditions

# `guest` is left out, since it is part of `user`.
_WORKING = ("user", "nice", "system", "irq", "softirq")
_WAITING = ("idle", "iowait", "steal")
# The file's name in version 2 of the control groups; its controller and name in version 1.
_STATISTICS = ("cpu.stat", "cpu", "cpu.stat")
_MICROSECONDS = 1e-6
_NANOSECONDS = 1e-9


@dataclass(frozen=True)
class HostCounters:
    """Readings of the kernel's counters; only differences of two readings have a meaning.

    All times are in seconds, and a missing counter is None. ``working`` is the time in which CPUs
    ran programs or the kernel, and ``waiting`` is all other time; both are sums over the CPUs.
    ``steal`` is the part of ``waiting`` that the hypervisor took. ``own_seconds`` is the CPU time
    of the trial's processes, and ``frozen`` the time for which a CPU quota stopped them.
    ``throttled`` counts how often heat lowered a clock.
    """

    at: float
    working: float
    waiting: float
    steal: float | None
    own_seconds: float | None
    frozen: float | None
    throttled: int | None


def own_processes() -> tuple[psutil.Process, ...]:
    """The current process and all processes that it started; empty if unknown."""
    current = psutil.Process()
    try:
        return (current, *current.children(recursive=True))
    except (OSError, psutil.Error):
        return ()


def read_host(
    processes: tuple[psutil.Process, ...],
    system: Path = SYSTEM,
    *,
    cpus: frozenset[int] | None = None,
) -> HostCounters:
    """Read all counters: times of ``cpus`` (None: all CPUs), and the CPU time of ``processes``."""
    times = _seconds_by_kind(cpus, system)
    return HostCounters(
        at=time.monotonic(),
        working=sum(times.get(name, 0.0) for name in _WORKING),
        waiting=sum(times.get(name, 0.0) for name in _WAITING),
        steal=times.get("steal"),
        own_seconds=_summed_cpu_seconds(processes),
        frozen=frozen_seconds(ControlGroups()),
        throttled=throttle_count(system),
    )


def _seconds_by_kind(cpus: frozenset[int] | None, system: Path) -> Mapping[str, float]:
    """CPU seconds of ``cpus`` (None: all) by kind, such as user and idle.

    Empty if a container hides them, or if a CPU is offline or not counted separately.
    """
    try:
        if cpus is None:
            return psutil.cpu_times()._asdict()
        every = psutil.cpu_times(percpu=True)
    except (OSError, psutil.Error):
        return {}
    # The kernel gives the numbers of the online CPUs, because psutil does not state them.
    online = sorted(parse_cpu_list(read_text(system / "cpu/online")))
    if len(online) != len(every) or not cpus <= set(online):
        return {}
    totals = Counter[str]()
    for number, times in zip(online, every, strict=True):
        totals.update(times._asdict() if number in cpus else {})
    return totals


def _summed_cpu_seconds(processes: tuple[psutil.Process, ...]) -> float | None:
    """CPU seconds of all ``processes``; None if a process has ended or there are no processes."""
    if not processes:
        return None
    with contextlib.suppress(OSError, psutil.Error):
        times = [process.cpu_times() for process in processes]
        return sum(cpu.user + cpu.system for cpu in times)
    return None


def frozen_seconds(groups: ControlGroups) -> float | None:
    """Seconds for which a CPU quota has stopped this process; None if unknown.

    The result is the maximum over control groups, since a group stops all groups below it.
    """
    stopped = [_stopped(read_text(file) or "") for file in groups.files(*_STATISTICS)]
    return max((seconds for seconds in stopped if seconds is not None), default=None)


def _stopped(text: str) -> float | None:
    counts = dict(line.split(maxsplit=1) for line in text.splitlines() if " " in line)
    if "throttled_usec" in counts:
        return int(counts["throttled_usec"]) * _MICROSECONDS
    return int(counts["throttled_time"]) * _NANOSECONDS if "throttled_time" in counts else None


# Why a field of ``Conditions`` is None, by the field's name.
_REASONS: Mapping[str, str] = {
    "others_cpus": "the system does not give the CPU time of all processes",
    "steal_share": "the system does not count steal time",
    "frozen_seconds": "no control group with a CPU quota",
}


def host_change(before: HostCounters, after: HostCounters) -> Conditions:
    """The disturbances between two readings of the counters.

    If a reading lacks a counter, the field in the result is None, and ``unknown`` has the reason.
    """
    seconds = after.at - before.at
    counted = after.working + after.waiting - before.working - before.waiting
    own_seconds = _difference(before.own_seconds, after.own_seconds)
    steal = _difference(before.steal, after.steal)
    throttled = _difference(before.throttled, after.throttled)
    figures: dict[str, float | None] = {
        # Small differences may be negative, since the kernel counts in ticks.
        "others_cpus": max(0.0, after.working - before.working - own_seconds) / seconds
        if own_seconds is not None and counted > 0
        else None,
        "steal_share": min(1.0, steal / counted) if steal is not None and counted > 0 else None,
        "frozen_seconds": _difference(before.frozen, after.frozen),
    }
    return Conditions(
        seconds=seconds,
        **figures,
        throttles=None if throttled is None else ("cpu-heat",) * (throttled > 0),
        unknown={name: _REASONS[name] for name, figure in figures.items() if figure is None},
    )


def _difference(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else max(0.0, after - before)
