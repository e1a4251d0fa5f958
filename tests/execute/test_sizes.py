"""Counting many models at once."""

from __future__ import annotations

import os
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest

from epochcost.errors import CapabilityError, ModelError
from epochcost.execute import sizes
from epochcost.execute.sizes import SizeOrError, SizeProgress, model_sizes
from epochcost.plan.size import ModelSize
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.loader import load_catalogue
from tiny_project import write_tiny_project


@pytest.fixture(name="catalogue")
def catalogue_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalogue:
    """The tiny project with five copies of its model, the fourth of them without a graph.

    The cache is the test's own.
    """
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    project = write_tiny_project(tmp_path / "project")
    spec = (project / "specs/models/tiny.toml").read_text()
    for number in range(5):
        copy = spec.replace('"tiny"', f'"copy-{number}"', 1)
        graph = "broken.onnx" if number == 3 else "tiny.onnx"
        (project / f"specs/models/copy-{number}.toml").write_text(copy.replace("tiny.onnx", graph))
    (project / "models/broken.onnx").write_bytes(b"no graph at all")
    return load_catalogue(project)


def test_processes_count_what_one_counts(
    catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copies are counted side by side, in the order of their ids, faults included."""
    few = model_sizes(catalogue, ["tiny"])["tiny"]
    monkeypatch.setattr(sizes, "_FEW_BYTES", 0)
    seen: list[SizeProgress] = []
    found = model_sizes(catalogue, catalogue.models, seen.append)
    assert list(found) == [*(f"copy-{number}" for number in range(5)), "tiny"]
    assert isinstance(found["copy-3"], ModelError)
    copy = found["copy-0"]
    assert isinstance(copy, ModelSize)
    assert isinstance(few, ModelSize)
    assert copy.footprints == few.footprints
    assert [(counted.done, counted.total) for counted in seen] == [(n, 6) for n in range(1, 7)]
    assert seen[0].model == "tiny"  # which was kept


def test_a_second_look_starts_nothing(
    catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is kept is not counted again; what failed is."""
    first = model_sizes(catalogue, catalogue.models)
    counted: list[str] = []

    def watched(query: sizes.SizeQuery) -> SizeOrError:
        counted.append(query.model.id)
        return ModelError("as before")

    monkeypatch.setattr(sizes, "_size", watched)
    second = model_sizes(catalogue, catalogue.models)
    assert counted == ["copy-3"]
    assert [second[name] for name in ("copy-0", "tiny")] == [first["copy-0"], first["tiny"]]


def test_a_process_that_is_killed_costs_its_models_only() -> None:
    """The kernel ends what takes too much memory: the rows say so, and the command goes on."""
    future: Future[SizeOrError] = Future()
    future.set_exception(BrokenProcessPool(f"of {os.getpid()}"))
    answer = sizes._result(future)
    assert isinstance(answer, CapabilityError)
    assert "ended before its time" in str(answer)
