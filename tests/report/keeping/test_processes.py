"""Work in processes beside the build."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from epochcost.report.keeping.processes import begun_beside

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="processes are forked on Linux only"
)


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
