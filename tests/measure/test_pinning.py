"""All threads of a pinned worker run on whole cores of one node."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import psutil
import pytest

from epochcost.errors import CapabilityError
from epochcost.measure import pinning
from epochcost.measure.job import Job, Progress, SamplingRule
from epochcost.measure.pinning import (
    Topology,
    choose_cpus,
    choose_pinning,
    pin_children,
    read_topology,
    require_pinned,
    why_not_pinned,
)
from epochcost.measure.trial import run_trial
from epochcost.plan.trial import SessionSettings
from epochcost.results.records import Pinning

# Long enough to be looked at while it lasts, by a test that waits for its CPU too.
_A_WHILE = SamplingRule(relative_half_width=0.9, minimum_seconds=1.5, budget_seconds=6)
pins = pytest.mark.skipif(why_not_pinned() is not None, reason="this system pins no process")


def two_sockets(cores: int = 4) -> Topology:
    """Two nodes with these cores of two threads each, numbered as Linux does."""
    total = 2 * cores
    threads = {cpu: frozenset({cpu % total, cpu % total + total}) for cpu in range(2 * total)}
    return Topology(threads, {cpu: cpu % total // cores for cpu in range(2 * total)})


@pytest.mark.parametrize(
    ("count", "chosen"),
    [
        (1, (0,)),
        (2, (0, 8)),
        (3, (0, 1, 8)),
        (4, (0, 1, 8, 9)),
        (8, (0, 1, 2, 3, 8, 9, 10, 11)),
        (10, (0, 1, 2, 3, 4, 8, 9, 10, 11, 12)),
    ],
)
def test_siblings_are_taken_together_on_one_node_first(count: int, chosen: tuple[int, ...]) -> None:
    """CPUs are chosen as whole cores first, and on one node as long as they fit."""
    assert choose_cpus(count, range(16), two_sockets()) == chosen


def test_whole_cores_come_before_halves() -> None:
    """A core whose sibling CPU is not allowed is not the first choice."""
    assert choose_cpus(2, set(range(16)) - {8}, two_sockets()) == (1, 9)


def test_the_kernels_files_are_read(tmp_path: Path) -> None:
    """Cores are read from either name of their file, nodes from their lists."""
    for cpu, name in ((0, "core_cpus_list"), (2, "thread_siblings_list")):
        folder = tmp_path / f"cpu/cpu{cpu}/topology"
        folder.mkdir(parents=True)
        (folder / name).write_text("0,2\n")
    (tmp_path / "node/node1").mkdir(parents=True)
    (tmp_path / "node/node1/cpulist").write_text("0-2\n")
    found = read_topology({0, 2}, tmp_path)
    assert found == Topology({0: frozenset({0, 2}), 2: frozenset({0, 2})}, {0: 1, 1: 1, 2: 1})
    assert read_topology({0}, tmp_path / "absent") == Topology({}, {})


def test_the_record_says_what_was_left_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """The record of a trial on one CPU of a core names the idle sibling."""
    monkeypatch.setattr(pinning, "read_topology", lambda *_: two_sockets())
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)), raising=False)
    monkeypatch.setattr(os, "sched_setaffinity", lambda *_: None, raising=False)
    lone = Pinning(cpus=(0,), siblings=(8,), cores=1, numa_nodes=1, threads=1)
    assert choose_pinning(1, 1) == lone
    assert choose_pinning(9, 9).numa_nodes == 2


def test_more_cpus_than_there_are_is_refused() -> None:
    """Too many CPUs are refused with the requested and the available number."""
    with pytest.raises(CapabilityError, match=r"expected 4096 CPUs.*may use \d+"):
        choose_pinning(4096, 1)


def test_a_system_that_cannot_pin_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the system call, pinning is refused instead of skipped."""
    monkeypatch.delattr(os, "sched_setaffinity", raising=False)
    with pytest.raises(CapabilityError, match="cannot pin a process to CPUs"):
        choose_pinning(1, 1)


@pins
def test_this_process_gets_its_cpus_back() -> None:
    """After pinning, and after an error in it, the process has its CPUs again."""
    before = os.sched_getaffinity(0)
    pinned = choose_pinning(1, 1)
    with pin_children(pinned):
        require_pinned(pinned)
    assert os.sched_getaffinity(0) == before
    with pytest.raises(KeyError), pin_children(pinned):
        raise KeyError
    assert os.sched_getaffinity(0) == before


@pins
def test_cpus_that_are_gone_are_an_error() -> None:
    """Pinning to an absent CPU fails, and a worker on other CPUs refuses to measure."""
    absent = Pinning(cpus=(4095,), threads=1)
    with (
        pytest.raises(CapabilityError, match="expected a worker on CPUs 4095"),
        pin_children(absent),
    ):
        pass
    with pytest.raises(CapabilityError, match="expected a worker on CPUs 4095, got CPUs 0"):
        require_pinned(absent)


@pins
@pytest.mark.parametrize("threads", [1, 3])
def test_no_thread_of_a_pinned_worker_runs_elsewhere(
    job_of: Callable[..., Job], product: onnx.ModelProto, tmp_path: Path, threads: int
) -> None:
    """The kernel shows the pinned CPUs for all threads of the worker while it samples."""
    seen: list[set[str]] = []
    names: set[str] = set()

    def look(progress: Progress) -> None:
        if progress.phase != "sampling":
            return
        (worker,) = (
            child
            for child in psutil.Process().children()
            if "epochcost.measure.worker" in child.cmdline()
        )
        for task in Path(f"/proc/{worker.pid}/task").iterdir():
            status = (task / "status").read_text()
            seen.append(set(_field(status, "Cpus_allowed_list").split(",")))
            names.add(task.name)

    pinned = choose_pinning(1, threads)
    job = job_of(
        product,
        {"x": np.ones((2, 2, 4), "f4")},
        {"w": np.ones((4, 3), "f4")},
        mode="inference",
        pinning=pinned,
        session=SessionSettings(threads=threads),
        sampling=_A_WHILE,
    )
    measurement = run_trial(job, tmp_path, look)
    assert measurement.pinning == pinned
    assert len(names) >= threads
    assert all(cpus == {str(pinned.cpus[0])} for cpus in seen)


def _field(status: str, name: str) -> str:
    (line,) = (line for line in status.splitlines() if line.startswith(f"{name}:"))
    return line.partition(":")[2].strip()
