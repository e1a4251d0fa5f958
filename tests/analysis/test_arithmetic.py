"""The arithmetic that a model's page shows."""

from __future__ import annotations

import os
from pathlib import Path

import onnx
import pytest

from epochcost.analysis import arithmetic
from epochcost.analysis.arithmetic import Arithmetic, arithmetic_of
from tiny_project import linear_model


def test_one_example_is_counted(tmp_path: Path) -> None:
    """Sixteen inputs and three outputs; a batch that the file fixes is shared out."""
    model = linear_model()
    path = tmp_path / "tiny.onnx"
    onnx.save(model, path)
    assert arithmetic_of(path, {}) == Arithmetic(51, 2 * 16 * 3)
    for value in (model.graph.input[0], model.graph.output[0]):
        value.type.tensor_type.shape.dim[0].dim_value = 5
    onnx.save(model, path)
    os.utime(path, ns=(0, 0))  # another file, whatever the clock's resolution
    assert arithmetic_of(path, {}) == Arithmetic(51, 2 * 16 * 3)


def test_a_count_is_kept_for_other_builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By all that it follows from: other bytes are counted anew, and so is a damaged file."""
    path, kept = tmp_path / "tiny.onnx", tmp_path / "kept"
    onnx.save(linear_model(), path)
    found = arithmetic_of(path, {}, kept)
    (file,) = kept.iterdir()
    arithmetic._counted.cache_clear()
    with monkeypatch.context() as patched:
        patched.setattr(arithmetic, "load_model", None)
        assert arithmetic_of(path, {}, kept) == found
    file.write_text("{", encoding="utf-8")
    arithmetic._counted.cache_clear()
    assert arithmetic_of(path, {}, kept) == found
    path.write_bytes(b"no graph")
    assert arithmetic_of(path, {}, kept) is None


def test_what_cannot_be_counted_has_no_figure(tmp_path: Path) -> None:
    """No file, no graph, no such dimension: the page leaves the row out."""
    path = tmp_path / "tiny.onnx"
    assert arithmetic_of(path, {}) is None
    path.write_bytes(b"no graph")
    assert arithmetic_of(path, {}) is None
    good = tmp_path / "good.onnx"
    onnx.save(linear_model(), good)
    assert arithmetic_of(good, {"time": 3}) is None
