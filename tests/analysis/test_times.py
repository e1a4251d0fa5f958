"""Times of workloads: which graphs are counted for them, and when cached times are read again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from epochcost.analysis import arithmetic
from epochcost.analysis import times as times_of_workloads
from epochcost.analysis.inputs import Inputs, read_inputs
from epochcost.analysis.predicted import Times
from epochcost.analysis.rates import models_with_rates
from epochcost.analysis.times import cached_times, times_of
from epochcost.errors import InputError
from epochcost.graphs import profiling
from epochcost.graphs.profile import Arithmetic
from epochcost.predict.design import Precision
from epochcost.specs.loader import load_catalogue
from report_project import write_project


@pytest.fixture(scope="module", name="inputs")
def inputs_fixture(own_inputs: Inputs, tmp_path_factory: pytest.TempPathFactory) -> Inputs:
    """The project's catalogue and results, and an empty cache."""
    return replace(own_inputs, cache=tmp_path_factory.mktemp("cache"))


@dataclass(frozen=True)
class _Asked:
    """Times of models, and the file names of the graphs that were counted for them."""

    times: Times
    counted: frozenset[str]


def ask(inputs: Inputs, model: str) -> _Asked:
    """The times of a model, without counts of an earlier question, as in a user's project."""
    counted: set[str] = set()
    count = profiling.arithmetic_of_file

    def record(path: Path, dimensions: Mapping[str, int]) -> Arithmetic | None:
        counted.add(path.name)
        return count(path, dimensions)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(arithmetic, "_read_stored_counts", lambda _: {})
        patched.setattr(profiling, "arithmetic_of_file", record)
        patched.setattr(arithmetic, "_memory", {})
        return _Asked(times_of(inputs, [model]), frozenset(counted))


@pytest.fixture(scope="module", name="asked")
def asked_fixture(inputs: Inputs) -> _Asked:
    """The answer to a first question, about a small network."""
    return ask(inputs, "mnist-mlp")


def test_a_question_counts_no_graph_that_it_does_not_need(inputs: Inputs, asked: _Asked) -> None:
    """Only the graphs of the model in question and of models with rates are counted."""
    models = inputs.catalogue.models
    needed = {models[name].graph for name in (*models_with_rates(inputs), "mnist-mlp")}
    assert "mnist_mlp.onnx" in asked.counted
    assert asked.counted <= {Path(str(graph)).name for graph in needed}
    assert "llama3_1_70b.onnx" not in asked.counted


def test_a_second_question_counts_nothing(inputs: Inputs, asked: _Asked) -> None:
    """All counts are in the cache, and the second answer equals the first in every draw."""
    again = ask(inputs, "mnist-mlp")
    assert again.counted == frozenset()
    assert again.times == asked.times
    for first, second in zip(again.times.observations, asked.times.observations, strict=True):
        assert (first.draws is None) == (second.draws is None)
        if first.draws is not None and second.draws is not None:
            assert first.draws.values.tolist() == second.draws.values.tolist()


@dataclass
class _Project:
    """A project's folder with a cache; ``reads`` counts how often its results were read."""

    root: Path
    reads: int = 0

    def times(self, workload: str = "net", precision: Precision | None = None) -> Times:
        docs, cache = self.root / "docs", self.root / "cache"
        catalogue = load_catalogue(self.root)
        return cached_times(catalogue, docs / "data/results", docs, cache, workload, precision)


@pytest.fixture(name="project_with_cache")
def project_with_cache_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _Project:
    """A small project and an empty cache."""
    project = _Project(write_project(tmp_path))

    def count_read(*arguments: Any) -> Inputs:
        project.reads += 1
        return read_inputs(*arguments)

    monkeypatch.setattr(times_of_workloads, "read_inputs", count_read)
    return project


def test_cached_times_are_equal(project_with_cache: _Project) -> None:
    """The second answer reads no results, and equals the first with its warnings."""
    result = next(project_with_cache.root.glob("docs/data/results/*/*.json"))
    result.with_name("cut.json").write_text("{")
    first = project_with_cache.times()
    assert first.observations
    assert "cut.json" in first.problems[0]
    assert project_with_cache.times() == first
    assert project_with_cache.reads == 1
    project_with_cache.times(precision="mixed")
    assert project_with_cache.reads == 2


@pytest.mark.parametrize(
    ("name", "reads"),
    [
        ("specs/models/net.toml", 2),
        ("docs/data/results/*/*.json", 2),
        ("docs/data/results/new/cut.json", 2),
        ("docs/data/step-ratio.json", 2),
        ("specs/prices/*.toml", 1),
        ("docs/index.md", 1),
    ],
)
def test_cached_times_are_read_until_they_may_change(
    project_with_cache: _Project, name: str, reads: int
) -> None:
    """A change of a spec, a result or a ratio makes new times; a change of a price does not."""
    project_with_cache.times()
    path = next(project_with_cache.root.glob(name), project_with_cache.root / name)
    path.parent.mkdir(exist_ok=True)
    before = path.read_text() if path.exists() else "{}"
    path.write_text(f"{before}\n")
    project_with_cache.times()
    assert project_with_cache.reads == reads


def test_an_unknown_workload_computes_nothing(project_with_cache: _Project) -> None:
    """A misspelt model is an error at once, with a similar id."""
    with pytest.raises(InputError, match='did you mean "net"'):
        project_with_cache.times("nett")
    assert project_with_cache.reads == 0


def test_an_unreadable_file_is_left_out(project_with_cache: _Project) -> None:
    """A result that cannot be read is a warning, and then nothing is cached."""
    result = next(project_with_cache.root.glob("docs/data/results/*/*.json"))
    link = result.with_name("link.json")
    link.symlink_to("/proc/self/mem")
    for reads in (1, 2):
        assert link.name in project_with_cache.times().problems[0]
        assert project_with_cache.reads == reads
