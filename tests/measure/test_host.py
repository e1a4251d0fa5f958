"""Load on the machine beside the trial, from differences of the kernel's counters."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

from epochcost.measure.cpu import ControlGroups
from epochcost.measure.host import (
    HostCounters,
    frozen_seconds,
    host_change,
    own_processes,
    read_host,
)

BEFORE = HostCounters(
    at=50.0, working=100.0, waiting=300.0, steal=1.0, own_seconds=40.0, frozen=2.0, throttled=3
)


class CpuTimes(NamedTuple):
    """The seconds of a CPU, with psutil's field names."""

    user: float
    idle: float
    steal: float


def test_what_is_neither_ours_nor_idle_is_of_others() -> None:
    """Of 20 CPU seconds, 8 are the trial's, 1 is stolen, 6 are idle, and 5 are of others."""
    after = HostCounters(
        at=60.0, working=113.0, waiting=307.0, steal=2.0, own_seconds=48.0, frozen=2.5, throttled=3
    )
    changed = host_change(BEFORE, after)
    assert changed.seconds == 10.0
    assert changed.others_cpus == pytest.approx(0.5)
    assert changed.steal_share == pytest.approx(0.05)
    assert changed.frozen_seconds == pytest.approx(0.5)
    assert changed.throttles == ()
    assert changed.unknown == {}


def test_what_is_not_counted_is_unknown() -> None:
    """Counters at zero, missing counters and an ended process leave the load unknown."""
    nothing = HostCounters(
        at=0.0, working=0.0, waiting=0.0, steal=0.0, own_seconds=5.0, frozen=None, throttled=None
    )
    sandboxed = host_change(nothing, replace(nothing, at=1.0, own_seconds=6.0))
    assert (sandboxed.others_cpus, sandboxed.steal_share) == (None, None)
    ended = host_change(
        BEFORE, replace(BEFORE, at=51.0, working=101.0, own_seconds=None, steal=None)
    )
    assert (ended.others_cpus, ended.steal_share) == (None, None)
    assert sandboxed.throttles is None
    assert [*sandboxed.unknown] == [
        "others_cpus",
        "steal_share",
        "frozen_seconds",
    ]


@pytest.mark.parametrize(
    ("name", "membership", "text", "seconds"),
    [
        ("cpu.stat", "0::/\n", "usage_usec 9\nnr_throttled 4\nthrottled_usec 1500000\n", 1.5),
        ("cpu/cpu.stat", "3:cpu:/\n", "nr_throttled 4\nthrottled_time 2500000000\n", 2.5),
        ("cpu.stat", "0::/\n", "usage_usec 9\n", None),
    ],
)
def test_both_versions_count_the_time_that_a_quota_takes(
    tmp_path: Path, name: str, membership: str, text: str, seconds: float | None
) -> None:
    """Both versions of control groups count throttled time. Without a quota there is None."""
    (tmp_path / "membership").write_text(membership)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text)
    assert frozen_seconds(ControlGroups(tmp_path / "membership", tmp_path)) == seconds


def test_this_machine_can_be_read() -> None:
    """The counters of this machine include the time of this process."""
    counters = read_host(own_processes())
    assert counters.own_seconds is not None
    assert counters.own_seconds > 0


def test_a_process_that_has_ended_makes_the_load_unknown() -> None:
    """The time of a process that has ended cannot be read, so the load is unknown."""
    process = psutil.Popen(["true"])
    process.wait()
    assert read_host((process,)).own_seconds is None


def test_a_system_that_hides_its_times_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """If CPU times cannot be read, the load is unknown and the trial does not fail."""

    def refuse() -> None:
        raise PermissionError("/proc/stat")

    monkeypatch.setattr(psutil, "cpu_times", refuse)
    own = own_processes()
    changed = host_change(read_host(own), read_host(own))
    assert (changed.others_cpus, changed.steal_share) == (None, None)


def test_a_system_that_hides_its_processes_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """If processes cannot be read, the worker's time is unknown."""

    def refuse(*_: object, **__: object) -> None:
        raise psutil.AccessDenied

    monkeypatch.setattr(psutil.Process, "children", refuse)
    assert own_processes() == ()
    assert read_host(own_processes()).own_seconds is None


def test_some_cpus_are_watched_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the named CPUs count. An offline CPU is unknown."""
    monkeypatch.setattr(
        psutil, "cpu_times", lambda **_: [CpuTimes(8.0, 1.0, 0.5), CpuTimes(1.0, 9.0, 0.0)]
    )
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu/online").write_text("0,2\n")
    counters = read_host((), system=tmp_path, cpus=frozenset({2}))
    assert (counters.working, counters.waiting, counters.steal) == (1.0, 9.0, 0.0)
    unknown = read_host((), system=tmp_path, cpus=frozenset({1}))
    assert (unknown.working, unknown.waiting, unknown.steal) == (0, 0, None)
