"""Sizes of many models are counted in several processes and cached."""

from __future__ import annotations

import os
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from multiprocessing.context import BaseContext
from pathlib import Path

import pytest

from epochcost.errors import CapabilityError, ModelError
from epochcost.execute import sizes
from epochcost.execute.sizes import (
    SizeOrError,
    SizeQuery,
    cached_size,
    model_sizes,
    read_cached,
)
from epochcost.plan.size import ModelSize
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.loader import load_catalogue
from tiny_project import write_tiny_project


@pytest.fixture(name="catalogue")
def catalogue_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalogue:
    """The tiny project with five copies of its model, of which one has a damaged graph.

    The cache folder belongs to the test.
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
    """Several processes give the sizes that one gives, in order of ids, with errors in place."""
    few = model_sizes(catalogue, ["tiny"])["tiny"]
    monkeypatch.setattr(sizes, "_FEW_BYTES", 0)
    found = model_sizes(catalogue, catalogue.models)
    assert list(found) == [*(f"copy-{number}" for number in range(5)), "tiny"]
    assert isinstance(found["copy-3"], ModelError)
    copy = found["copy-0"]
    assert isinstance(copy, ModelSize)
    assert isinstance(few, ModelSize)
    assert copy.footprints == few.footprints


def test_there_are_as_many_processes_as_usable_cpus(
    catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container with a quota of one CPU on a large host counts in one process."""
    asked: list[int] = []

    class Pool(sizes.ProcessPoolExecutor):
        def __init__(self, workers: int, context: BaseContext) -> None:
            asked.append(workers)
            super().__init__(workers, context)

    monkeypatch.setattr(sizes, "_FEW_BYTES", 0)
    monkeypatch.setattr(sizes, "ProcessPoolExecutor", Pool)
    monkeypatch.setattr("epochcost.measure.pinning.cpu_quota", lambda: 1.2)
    assert len(model_sizes(catalogue, catalogue.models)) == 6
    assert asked == [1]


def test_a_second_look_starts_nothing(
    catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cached sizes are not counted again; failed ones are."""
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
    """If the kernel kills a process for its memory, its models have an error, not a size."""
    future: Future[SizeOrError] = Future()
    future.set_exception(BrokenProcessPool(f"of {os.getpid()}"))
    answer = sizes._result(future)
    assert isinstance(answer, CapabilityError)
    assert "ended early" in str(answer)


@pytest.fixture(name="folder", autouse=True)
def folder_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "epochcost" / "sizes"


@pytest.fixture(name="query")
def query_fixture(tmp_path: Path) -> SizeQuery:
    """The tiny project's model at two batch sizes."""
    catalogue = load_catalogue(write_tiny_project(tmp_path / "project"))
    model = catalogue.model("tiny")
    return SizeQuery(model, catalogue.graph_path(model), {"training": (2, 4), "inference": (1,)})


def test_a_size_is_counted_once(
    query: SizeQuery, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second call returns the cached size without counting."""
    first = cached_size(query)
    assert len(list(folder.iterdir())) == 1

    def refuse(*_: object) -> ModelSize:
        raise AssertionError("counted again")

    monkeypatch.setattr(sizes, "count_size", refuse)
    assert cached_size(query) == first


def test_another_question_is_counted_anew(query: SizeQuery) -> None:
    """Another batch size, provider, spec or graph has no cached size."""
    cached_size(query)
    training = query.model.training
    assert training is not None
    frozen = training.model_copy(update={"freeze": ("w",)})
    others = [
        replace(query, batch_sizes={"training": (2,)}),
        replace(query, provider="cuda"),
        replace(query, model=query.model.model_copy(update={"training": frozen})),
    ]
    assert [read_cached(other) for other in others] == [None] * len(others)
    query.graph.write_bytes(query.graph.read_bytes() + b"\x00")
    assert read_cached(query) is None


def test_a_damaged_file_is_counted_again(query: SizeQuery, folder: Path) -> None:
    """A truncated cache file is ignored, counted again and rewritten."""
    first = cached_size(query)
    (kept,) = folder.iterdir()
    kept.write_bytes(kept.read_bytes()[:-7])
    assert read_cached(query) is None
    assert cached_size(query) == first == read_cached(query)


def test_a_graph_that_cannot_be_read_says_so(query: SizeQuery, folder: Path) -> None:
    """A missing graph is an error each time, and nothing is cached."""
    query.graph.unlink()
    with pytest.raises(ModelError, match="there is no such file"):
        cached_size(query)
    assert not folder.exists()
