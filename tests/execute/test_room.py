"""Trials that need more memory than this machine has are left out with the reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochcost.execute import planning
from epochcost.execute.planning import plan_run
from epochcost.execute.sizing import PROCESS_BYTES
from epochcost.plan.make import RunRequest
from epochcost.specs.loader import load_catalogue
from tiny_project import write_tiny_project

CPU = RunRequest(providers=("cpu",))


def test_the_machine_has_room_of_its_own() -> None:
    """The room on the CPU is the process's memory limit."""
    assert planning.room_bytes()["cpu"] == planning.memory_limit_bytes()


def test_the_largest_batch_that_fits_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch of 400 that needs too much memory is left out with the bytes that it needs."""
    project = write_tiny_project(tmp_path)
    spec = project / "specs/models/tiny.toml"
    spec.write_text(spec.read_text().replace("[2, 4]", "[2, 400]"))
    catalogue = load_catalogue(project)
    everything = plan_run(catalogue, CPU)
    assert [trial.batch_size for trial in everything.trials] == [1, 2, 400]
    # 400 examples of 72 bytes wait 512 deep; two of them take less than a twentieth of that.
    limit = PROCESS_BYTES + 2**20
    monkeypatch.setattr(planning, "memory_limit_bytes", lambda: limit)
    fitting = plan_run(catalogue, CPU)
    assert [trial.batch_size for trial in fitting.trials] == [1, 2]
    (left,) = fitting.left_out
    assert left.what == "tiny training cpu batch 400"
    assert left.reason == "needs about 118.1 MiB; the machine has 105.0 MiB"


def test_a_graph_that_cannot_be_read_is_left_out_once(tmp_path: Path) -> None:
    """The plan lists one reason for the whole model."""
    project = write_tiny_project(tmp_path)
    (project / "models/tiny.onnx").write_bytes(b"no graph at all")
    plan = plan_run(load_catalogue(project), CPU)
    assert plan.trials == ()
    (left,) = plan.left_out
    assert left.what == "tiny"
    assert "truncated or is not ONNX" in left.reason
