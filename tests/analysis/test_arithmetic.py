"""The operation counts on a model's page."""

from __future__ import annotations

import os
from pathlib import Path

import onnx
import pytest

from epochcost.analysis import arithmetic
from epochcost.analysis.arithmetic import Arithmetic, Graph, arithmetic_of_graph
from epochcost.graphs.profile import Profile
from tiny_project import linear_model


def arithmetic_of(
    path: Path, dimensions: dict[str, int], cache: Path | None = None
) -> Arithmetic | None:
    """The operation counts of a single graph."""
    graph = Graph.of(path, dimensions)
    return graph and arithmetic_of_graph(graph, cache)


def test_one_example_is_counted(tmp_path: Path) -> None:
    """The counts are those of one example, also if the graph has a fixed batch size of 5."""
    model = linear_model()
    products = Profile(96, 96, 16 + 3, 0, 0, parameters=51, products=1)
    counted = Arithmetic(51, 2 * 16 * 3, profile=products)
    path = tmp_path / "tiny.onnx"
    onnx.save(model, path)
    assert arithmetic_of(path, {}) == counted
    for value in (model.graph.input[0], model.graph.output[0]):
        value.type.tensor_type.shape.dim[0].dim_value = 5
    onnx.save(model, path)
    os.utime(path, ns=(0, 0))  # another file at any resolution of the clock
    assert arithmetic_of(path, {}) == counted


def test_a_count_is_kept_for_other_builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cached count is used again; a changed graph or a damaged cache file is counted again."""
    path, cache = tmp_path / "tiny.onnx", tmp_path / "kept"
    onnx.save(linear_model(), path)
    arithmetic._memory.clear()
    counts = arithmetic_of(path, {}, cache)
    (file,) = cache.iterdir()
    arithmetic._memory.clear()
    with monkeypatch.context() as patched:
        patched.setattr("epochcost.graphs.profiling.arithmetic_of_file", None)
        assert arithmetic_of(path, {}, cache) == counts
    file.write_text("{", encoding="utf-8")
    arithmetic._memory.clear()
    assert arithmetic_of(path, {}, cache) == counts
    path.write_bytes(b"no graph")
    assert arithmetic_of(path, {}, cache) is None


def test_what_cannot_be_counted_has_no_figure(tmp_path: Path) -> None:
    """A missing file, an invalid graph and an unknown dimension have no counts."""
    path = tmp_path / "tiny.onnx"
    assert arithmetic_of(path, {}) is None
    path.write_bytes(b"no graph")
    assert arithmetic_of(path, {}) is None
    good = tmp_path / "good.onnx"
    onnx.save(linear_model(), good)
    assert arithmetic_of(good, {"time": 3}) is None
