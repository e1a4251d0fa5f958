"""A file without its weights: what is drawn, what stays, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from built_decoders import built_decoder, save_built
from epochcost.errors import ModelError
from epochcost.graphs.weightless import weightless
from exports import merged
from graph_text import model_of_text
from onnxstep.graphs.loading import load_model, load_model_bytes
from onnxstep.graphs.parameters import materialise, parameters

NORMALISED = (
    "g (float[n,2] x) => (float[n,2] y) <float[2,2] w = {1, -2, 3, -4}, float[2] s = {1, 1}, "
    "float[2] b = {0, 0}, float[2] m = {3, 4}, float[2] v = {1, 2}> "
    "{ h = MatMul(x, w) y = BatchNormalization(h, s, b, m, v) }"
)


def test_weights_are_drawn_as_wide_as_they_were(tmp_path: Path) -> None:
    """Drawn weights keep their deviation, constant weights their number. Tables stay stored."""
    path = tmp_path / "built.onnx"
    save_built(built_decoder(), path)
    stored, drawn = load_model(path), weightless(path)
    assert [tensor.name for tensor in drawn.graph.initializer if len(tensor.dims) > 1] == [
        "cosines",
        "sines",
    ]
    before, after = materialise(stored), materialise(drawn)
    assert before.keys() == after.keys()
    for name, values in before.items():
        assert values.shape == after[name].shape
        assert float(np.std(after[name])) == pytest.approx(float(np.std(values)), rel=0.1)
    np.testing.assert_array_equal(after["norm.weight"], before["norm.weight"])
    onnx.checker.check_model(drawn)


@pytest.mark.parametrize("values", [[1.0, 2, 3, 4, 5, 6], []])
def test_initializers_among_the_inputs_are_drawn(tmp_path: Path, values: list[float]) -> None:
    """Initializers that IR version 3 also lists as inputs are inputs once, empty ones too."""
    width = len(values) // 3
    model = model_of_text(
        f"g (float[n,3] x, float[3,{width}] w) => (float[n,3] y) <float[3] b = {{1, 2, 3}}> "
        "{ a = MatMul(x, w) s = ReduceSum <keepdims = 0> (a) c = Add(x, s) y = Mul(c, b) }",
    )
    array = np.array(values, np.float32).reshape(3, width)
    model.graph.initializer.append(onnx.numpy_helper.from_array(array, "w"))
    model.ir_version = 3
    onnx.save(model, tmp_path / "model.onnx")
    drawn = weightless(tmp_path / "model.onnx")
    assert [value.name for value in drawn.graph.input] == ["x", "w"]
    assert materialise(load_model_bytes(drawn.SerializeToString()))["w"].shape == (3, width)


def test_weights_in_constant_nodes_are_drawn(tmp_path: Path) -> None:
    """Constants that the loader takes for parameters are drawn."""
    text = (
        "g (float[n,2] x) => (float[n,2] y) { w = Constant <value = float[2] {3,4}> () "
        "y = Mul(x, w) }"
    )
    onnx.save(model_of_text(text), tmp_path / "model.onnx")
    assert [one.name for one in parameters(weightless(tmp_path / "model.onnx"))] == ["w"]


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_a_file_that_could_not_be_read_again_is_not_written(tmp_path: Path, number: float) -> None:
    """Weights that are no numbers are refused, and no file is written."""
    model = model_of_text(NORMALISED)
    weights = np.array([[number, 1], [2, 3]], np.float32)
    model.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(weights, "w"))
    onnx.save(model, tmp_path / "model.onnx")
    done = run(tmp_path, "model.onnx", "-o", "drawn.onnx")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("model.onnx: ")
    assert not (tmp_path / "drawn.onnx").exists()


def test_data_that_does_not_fill_its_shape_is_refused(tmp_path: Path) -> None:
    """A tensor whose data does not fill its shape is refused in one line."""
    model = model_of_text(NORMALISED)
    model.graph.initializer[0].dims[0] = 3
    onnx.save(model, tmp_path / "model.onnx")
    with pytest.raises(ModelError, match="tensor 'w': expected data that fills the shape"):
        weightless(tmp_path / "model.onnx")


@pytest.mark.parametrize("four_bits", [False, True])
def test_a_file_without_floats_is_refused(tmp_path: Path, four_bits: bool) -> None:
    """A file of codes and a file without weights are refused."""
    path = tmp_path / "model.onnx"
    save_built(built_decoder(four_bits=True), path)
    if not four_bits:
        save_built(built_decoder(), path)
        onnx.save(weightless(path), path)
    words = "got some of 4 bits" if four_bits else "this one has none"
    with pytest.raises(ModelError, match=f"model.onnx: expected.*{words}"):
        weightless(path)


def test_the_command_says_what_it_wrote(tmp_path: Path) -> None:
    """The command prints the number of drawn parameters, or one line for a bad file."""
    save_built(built_decoder(), tmp_path / "built.onnx")
    done = run(tmp_path, "built.onnx", "-o", "drawn.onnx")
    count = sum(values.size for values in materialise(load_model(tmp_path / "drawn.onnx")).values())
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("drawn.onnx: ")
    assert done.stdout.endswith(f"; {count:,} parameters are drawn\n")
    wrong = run(tmp_path, "none.onnx", "-o", "other.onnx")
    assert (wrong.returncode, wrong.stderr.count("\n")) == (1, 1)
    assert run(tmp_path, "built.onnx", "-o", "drawn").returncode == 2
    assert "which exists" in run(tmp_path, "none.onnx", "-o", "drawn.onnx").stderr


def test_a_file_of_old_initializers_is_read_back(tmp_path: Path) -> None:
    """A parameter that IR version 3 also lists as an input is one input when read back."""
    model = onnx.parser.parse_model(
        '<ir_version: 3, opset_import: ["" : 8]> '
        "g (float[2,3] x, float[3,4] w) => (float[2,4] y) "
        f"<float[3,4] w = {{{', '.join(map(str, range(12)))}}}> {{ y = MatMul(x, w) }}"
    )
    model.graph.input.add().CopyFrom(helper.make_tensor_value_info("w", 1, [3, 4]))
    onnx.save(model, tmp_path / "old.onnx")
    drawn = load_model_bytes(weightless(tmp_path / "old.onnx").SerializeToString())
    assert [value.name for value in drawn.graph.input] == ["x", "w"]
    assert [one.name for one in parameters(drawn)] == ["w"]


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a separate process."""
    command = [sys.executable, "-m", "epochcost", "weightless", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_merged_tensors_are_drawn_apart(tmp_path: Path) -> None:
    """Tensors that an exporter merged are separate inputs."""
    path = tmp_path / "merged.onnx"
    onnx.save(merged(), path)
    drawn = weightless(path)
    onnx.checker.check_model(drawn)
    assert {"0.norm.weight", "1.norm.weight"} <= {value.name for value in drawn.graph.input}
