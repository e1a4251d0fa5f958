"""The operation counts on a model's page."""

from __future__ import annotations

import os
from pathlib import Path

import onnx
import pytest

from epochcost.analysis import arithmetic
from epochcost.analysis.arithmetic import (
    Arithmetic,
    Graph,
    arithmetic_of_graphs,
    forward_shares,
    step_parts,
)
from epochcost.graphs.profile import Profile
from epochcost.report.pages.page import Report
from tiny_project import linear_model


def arithmetic_of(
    path: Path, dimensions: dict[str, int], cache: Path | None = None
) -> Arithmetic | None:
    """The count of one graph."""
    return arithmetic_of_graphs([Graph.of(path, dimensions)], cache)[0]


def test_one_example_is_counted(tmp_path: Path) -> None:
    """Sixteen inputs and three outputs; a fixed batch is divided by its size."""
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
    """Other bytes and a damaged cache file are counted again."""
    path, cache = tmp_path / "tiny.onnx", tmp_path / "kept"
    onnx.save(linear_model(), path)
    arithmetic._memory.clear()
    counts = arithmetic_of(path, {}, cache)
    (file,) = cache.iterdir()
    arithmetic._memory.clear()
    with monkeypatch.context() as patched:
        patched.setattr(arithmetic, "computed_in_copies", None)
        assert arithmetic_of(path, {}, cache) == counts
    file.write_text("{", encoding="utf-8")
    arithmetic._memory.clear()
    assert arithmetic_of(path, {}, cache) == counts
    path.write_bytes(b"no graph")
    assert arithmetic_of(path, {}, cache) is None


def test_what_cannot_be_counted_has_no_figure(tmp_path: Path) -> None:
    """A missing file, an invalid graph and an unknown dimension give no row."""
    path = tmp_path / "tiny.onnx"
    assert arithmetic_of(path, {}) is None
    path.write_bytes(b"no graph")
    assert arithmetic_of(path, {}) is None
    good = tmp_path / "good.onnx"
    onnx.save(linear_model(), good)
    assert arithmetic_of(good, {"time": 3}) is None


def test_the_backward_pass_is_twice_the_forward_pass(report: Report) -> None:
    """At batch 32; plain SGD reads weights and gradients and writes weights: 12 bytes a number."""
    model = report.catalogue.models["net"]
    forward, backward, update = step_parts(Arithmetic(110, 100.0, 10), model, 32)
    assert forward.flops == 3200
    assert backward.flops == 6400
    assert update.flops is None
    assert (forward.least_bytes, backward.least_bytes, update.least_bytes) == (400, 800, 1200)
    assert step_parts(None, model, 32) == ()


def test_inference_at_the_same_batch_size_is_the_forward_pass(report: Report) -> None:
    """5.05 ms of 11 ms at batch 32; batch 128 has no inference."""
    (share,) = forward_shares([row for row in report.observations if row.workload.id == "net"])
    assert share.training.batch_size == share.inference.batch_size == 32
    assert share.share.mean == pytest.approx(0.00507 / 0.011, rel=0.01)
