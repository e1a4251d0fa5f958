"""Work in processes beside the build."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from epochcost.report.keeping.processes import begun_beside, begun_waiting

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="processes are forked on Linux only"
)

_WAIT_SECONDS = 60


def test_every_item_is_done(tmp_path: Path) -> None:
    """Whatever the number of processes, each item leaves its file."""
    begun_beside(lambda name: (tmp_path / name).touch(), ["a", "b", "c", "d", "e"], 2).wait()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "c", "d", "e"]


def test_a_failure_stays_in_its_process(tmp_path: Path) -> None:
    """The item that fails and those after it are undone, and the caller goes on."""

    def work(name: str) -> None:
        if name == "bad":
            raise ValueError(name)
        (tmp_path / name).touch()

    begun_beside(work, ["good", "bad", "later"], 1).wait()
    assert [path.name for path in tmp_path.iterdir()] == ["good"]


def test_work_may_be_given_later(tmp_path: Path) -> None:
    """Piece by piece, also by another process, and all of it is done when the giver finishes."""

    def touch(given: Iterator[Path]) -> None:
        for path in given:
            path.touch()

    waiting = begun_waiting(touch)
    begun_beside(waiting.give, [tmp_path / "other"], 1).wait()
    waiting.give(tmp_path / "own")
    waiting.finish()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "own"]


def test_a_process_may_wait_in_vain(tmp_path: Path) -> None:
    """Given nothing it ends; where it failed, what it is given is left undone."""
    begun_waiting(list).finish()
    failed = begun_waiting(lambda _: 1 / 0)
    failed.process.wait()
    failed.give([tmp_path / "undone"] * 100_000)
    failed.finish()
    assert list(tmp_path.iterdir()) == []


def test_a_process_may_be_finished_twice(tmp_path: Path) -> None:
    """The second time nothing is left to do, and no file that was opened since is closed."""
    waiting = begun_waiting(list)
    waiting.finish()
    with (tmp_path / "later").open("w", encoding="utf-8") as later:
        waiting.finish()
        later.write("still open")
    assert (tmp_path / "later").read_text(encoding="utf-8") == "still open"


def test_a_process_is_abandoned_with_what_it_began(tmp_path: Path) -> None:
    """Nobody waits for either, and neither is left."""

    def wait_for_ever(given: Iterator[Path]) -> None:
        beside = begun_beside(lambda _: time.sleep(600), [None], 1)
        next(given).write_text(str(beside.children[0]), encoding="utf-8")
        beside.wait()

    waiting = begun_waiting(wait_for_ever)
    told = tmp_path / "begun"
    waiting.give(told)
    while not (told.exists() and told.read_text(encoding="utf-8")):
        time.sleep(0.01)
    begun = psutil.Process(int(told.read_text(encoding="utf-8")))
    waiting.abandon()
    assert psutil.wait_procs([begun], timeout=_WAIT_SECONDS)[1] == []
    assert not psutil.pid_exists(waiting.process.children[0])
