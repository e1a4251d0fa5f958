"""What the machine did beside the trial: other programs, the hypervisor, quotas and heat.

Everything is a difference of the kernel's counters between the begin and the end of a phase.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from epochcost.measure.cpu import SYSTEM, throttle_count
from epochcost.measure.kernel_files import ControlGroups, parse_cpu_list, read_text

# `guest` is part of `user` already; waiting is not working.
_WORKING = ("user", "nice", "system", "irq", "softirq")
_WAITING = ("idle", "iowait", "steal")
# By version of the control groups: the file's name, its controller, the file's name.
_STATISTICS = ("cpu.stat", "cpu", "cpu.stat")
_MICROSECONDS = 1e-6
_NANOSECONDS = 1e-9


@dataclass(frozen=True)
class HostCounters:
    """CPU seconds since some moment in the past, of the CPUs watched, and the time of reading.

    ``own`` are those of the processes that belong to the trial, on any CPU: what the worker's
    parent takes elsewhere is too little to tell. None is not counted here.
    """

    at: float
    working: float
    waiting: float
    steal: float | None
    own: float | None
    frozen: float | None
    throttled: int | None


@dataclass(frozen=True)
class HostChange:
    """What two readings tell; None where one of them cannot."""

    seconds: float
    others_cpus: float | None
    steal_share: float | None
    frozen_seconds: float | None
    throttled: bool | None


def own_processes() -> tuple[psutil.Process, ...]:
    """List this process and all that it has started, the worker among them; empty: unknown."""
    this = psutil.Process()
    try:
        return (this, *this.children(recursive=True))
    except (OSError, psutil.Error):
        return ()


def read_host(
    own: tuple[psutil.Process, ...],
    groups: ControlGroups | None = None,
    system: Path = SYSTEM,
    clock: Callable[[], float] = time.monotonic,
    *,
    cpus: frozenset[int] | None = None,
) -> HostCounters:
    """Read all counters now: CPU times of ``cpus`` alone where they are given."""
    times = _system_times() if cpus is None else _times_of(cpus, system)
    return HostCounters(
        at=clock(),
        working=sum(times.get(name, 0.0) for name in _WORKING),
        waiting=sum(times.get(name, 0.0) for name in _WAITING),
        steal=times.get("steal"),
        own=_own_seconds(own),
        frozen=frozen_seconds(groups or ControlGroups()),
        throttled=throttle_count(system),
    )


def _system_times() -> Mapping[str, float]:
    """CPU seconds by kind; empty where the system hides them, as a hardened container does."""
    try:
        return psutil.cpu_times()._asdict()
    except (OSError, psutil.Error):
        return {}


def _times_of(cpus: frozenset[int], system: Path) -> Mapping[str, float]:
    """CPU seconds by kind of some CPUs; empty where the system does not tell them apart.

    psutil lists the CPUs that are online, without their numbers.
    """
    try:
        every = psutil.cpu_times(percpu=True)
    except (OSError, psutil.Error):
        return {}
    online = sorted(parse_cpu_list(read_text(system / "cpu/online")))
    if len(online) != len(every) or not cpus <= set(online):
        return {}
    totals = Counter[str]()
    for number, times in zip(online, every, strict=True):
        totals.update(times._asdict() if number in cpus else {})
    return totals


def _own_seconds(own: tuple[psutil.Process, ...]) -> float | None:
    """None where one has ended or none is known: their time cannot be told from that of others."""
    if not own:
        return None
    with contextlib.suppress(OSError, psutil.Error):
        times = [process.cpu_times() for process in own]
        return sum(one.user + one.system for one in times)
    return None


def frozen_seconds(groups: ControlGroups) -> float | None:
    """How long quotas have stopped the groups of this process; None where nothing counts it.

    Of nested groups the longest: one stops what is below it. Version 2 counts ``throttled_usec``,
    version 1 ``throttled_time`` in nanoseconds.
    """
    stopped = [_stopped(read_text(file) or "") for file in groups.files(*_STATISTICS)]
    return max((seconds for seconds in stopped if seconds is not None), default=None)


def _stopped(text: str) -> float | None:
    counts = dict(line.split(maxsplit=1) for line in text.splitlines() if " " in line)
    if "throttled_usec" in counts:
        return int(counts["throttled_usec"]) * _MICROSECONDS
    return int(counts["throttled_time"]) * _NANOSECONDS if "throttled_time" in counts else None


def host_change(before: HostCounters, after: HostCounters) -> HostChange:
    """The difference between an earlier and a later reading."""
    seconds = after.at - before.at
    working, waiting = after.working - before.working, after.waiting - before.waiting
    own, counted = _difference(before.own, after.own), working + waiting > 0
    steal = _difference(before.steal, after.steal)
    throttled = _difference(before.throttled, after.throttled)
    return HostChange(
        seconds=seconds,
        # The kernel's ticks make small differences negative.
        others_cpus=max(0.0, working - own) / seconds if own is not None and counted else None,
        steal_share=min(1.0, steal / (working + waiting))
        if steal is not None and counted
        else None,
        frozen_seconds=_difference(before.frozen, after.frozen),
        throttled=None if throttled is None else throttled > 0,
    )


def _difference(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else max(0.0, after - before)


def unknown_reasons(changed: HostChange) -> Iterator[tuple[str, str]]:
    """Why fields are None, by their names in ``results.conditions.Conditions``."""
    if changed.others_cpus is None:
        yield "others_cpus", "the system does not tell the CPU time of all processes"
    if changed.steal_share is None:
        yield "steal_share", "the system does not count steal time"
    if changed.frozen_seconds is None:
        yield "frozen_seconds", "no control group with a CPU quota"
