"""The committed models are weightless, match their manifest, and run in ONNX Runtime."""

from __future__ import annotations

import hashlib
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import tomli

from onnxstep.graphs.initial import METADATA_KEY, STATE_KEY
from onnxstep.graphs.loading import load_model
from onnxstep.graphs.parameters import data_inputs, materialise, parameter_count

MODELS = Path(__file__).parents[2] / "models"
MANIFEST: dict[str, dict[str, Any]] = tomli.loads((MODELS / "manifest.toml").read_text("utf-8"))
NAMES = sorted(MANIFEST)
# A graph without weights takes kilobytes; larger files contain something else.
MAX_BYTES = 512 * 1024
# Limit for constants such as a mask or positions; weights are larger.
MAX_CONSTANT_ELEMENTS = 4096
# Networks whose sources use Keras's default first values.
KERAS = ["cifar10_cnn", "mnist_cnn", "mnist_mlp"]


def model(name: str) -> onnx.ModelProto:
    """The committed model of a name."""
    return load_model(MODELS / f"{name}.onnx")


def test_manifest_lists_every_file() -> None:
    """Files, entries and exporters correspond."""
    assert [f"{name}.onnx" for name in NAMES] == sorted(p.name for p in MODELS.glob("*.onnx"))
    assert sorted({entry["exporter"] for entry in MANIFEST.values()}) == sorted(
        path.name for path in MODELS.glob("export_*.py")
    )


@pytest.mark.parametrize("name", NAMES)
def test_manifest_agrees_with_the_file(name: str) -> None:
    """The hash is that of the file's bytes, other entries those of its content."""
    entry, data = MANIFEST[name], (MODELS / f"{name}.onnx").read_bytes()
    loaded = model(name)
    assert entry["file"] == f"{name}.onnx"
    assert entry["sha256"] == hashlib.sha256(data).hexdigest()
    assert entry["opset"] == loaded.opset_import[0].version
    assert entry["ir_version"] == loaded.ir_version
    assert entry["parameter_count"] == parameter_count(loaded)


@pytest.mark.parametrize("name", NAMES)
def test_file_is_weightless_and_clean(name: str) -> None:
    """No weights, no unlisted opset, no text that describes the exporting machine."""
    loaded, data = model(name), (MODELS / f"{name}.onnx").read_bytes()
    onnx.checker.check_model(loaded, full_check=True)
    assert len(data) <= MAX_BYTES
    assert all(math.prod(t.dims) <= MAX_CONSTANT_ELEMENTS for t in loaded.graph.initializer)
    contributed = {node.domain for node in loaded.graph.node} - {""}
    assert [opset.domain for opset in loaded.opset_import] == ["", *contributed]
    assert contributed <= {"com.microsoft"}
    assert {entry.key for entry in loaded.metadata_props} <= {METADATA_KEY, STATE_KEY}
    assert not any(node.doc_string or node.metadata_props for node in loaded.graph.node)
    assert not re.search(rb"\.py|/\w+/\w+|[A-Z]:\\", data)


@pytest.mark.parametrize("name", KERAS)
def test_model_runs_in_onnx_runtime(name: str) -> None:
    """Finite logits at batch 1 and 32, each image independent of the others."""
    loaded = model(name)
    session = onnxruntime.InferenceSession(
        loaded.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (fed,) = data_inputs(loaded)
    images = np.random.default_rng(0).random((32, *fed.shape[1:]), dtype=np.float32)
    values = materialise(loaded)
    (many,) = session.run(["logits"], {"image": images, **values})
    (single,) = session.run(["logits"], {"image": images[:1], **values})
    assert many.shape == (32, 10)
    assert np.isfinite(many).all()
    np.testing.assert_allclose(single, many[:1], rtol=1e-4, atol=1e-5)
    assert np.ptp(many, axis=0).min() > 0
