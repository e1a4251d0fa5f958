"""GELU is rewritten so that ONNX Runtime fuses it, with equal results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from graph_text import model_of_text, optimized_operators, run
from onnxstep.passes.gelu import with_halving_last, with_single_nodes
from provider_steps import assert_alike_on_cuda, portable_and_special


def gelu(last: str, source: str = "x") -> onnx.ModelProto:
    """A model of s = 1 + erf(``source`` / √2), followed by the nodes in the text ``last``."""
    constants = " ".join(
        f"{name} = Constant <value = float {{{number}}}> ()"
        for name, number in {"root": 1.4142135, "one": 1, "half": 0.5}.items()
    )
    return model_of_text(
        "g (float[8] x, float[8] z) => (float[8] y) "
        f"{{ {constants} d = Div({source}, root) e = Erf(d) s = Add(e, one) {last} }}"
    )


@pytest.mark.parametrize(
    "last", ["h = Mul(half, s) y = Mul(x, h)", "h = Mul(s, half) y = Mul(h, x)"]
)
def test_an_exported_gelu_is_fused(last: str, tmp_path: Path) -> None:
    """ONNX Runtime fuses an exported GELU only after ``with_halving_last`` has rewritten it.

    The outputs of the two forms are equal.
    """
    model = gelu(last)
    ordered = with_halving_last(model)
    fed = {"x": np.linspace(-4, 4, 8, dtype=np.float32), "z": np.zeros(8, np.float32)}
    np.testing.assert_array_equal(run(ordered, fed)["y"], run(model, fed)["y"])
    assert "Gelu" in optimized_operators(ordered, tmp_path)
    assert "Erf" in optimized_operators(model, tmp_path)


@pytest.mark.parametrize(
    "model",
    [
        gelu("h = Mul(half, s) y = Mul(x, h)", source="z"),
        gelu("h = Mul(half, s) v = Mul(x, h) y = Add(v, h)"),
        gelu("h = Mul(one, s) y = Mul(x, h)"),
    ],
    ids=["of another value", "read twice", "not halved"],
)
def test_other_products_stay(model: onnx.ModelProto) -> None:
    """Products that are no GELU stay, and so does a GELU whose ½ (1 + erf …) is used twice."""
    assert with_halving_last(model) == model


@pytest.mark.parametrize(
    "last", ["h = Mul(half, s) g = Mul(x, h)", "p = Mul(x, s) g = Mul(p, half)"]
)
def test_a_step_for_cuda_has_a_single_node(last: str) -> None:
    """A CUDA step uses ONNX Runtime's Gelu node, with the results of the portable step."""
    model = gelu(f"{last} y = Mul(g, z)")
    del model.graph.input[0]
    weights = np.linspace(-4, 4, 8, dtype=np.float32)
    model.graph.initializer.append(numpy_helper.from_array(weights, "x"))
    portable, cuda = portable_and_special(model, "cuda")
    assert "Gelu" in {node.op_type for node in cuda.graph.node}
    assert_alike_on_cuda(portable, cuda)


def test_a_gelu_whose_parts_are_read_stays() -> None:
    """A GELU stays as it is if another node reads its erf."""
    model = gelu("p = Mul(x, s) h = Mul(p, half) y = Add(h, e)")
    assert "Gelu" not in {node.op_type for node in with_single_nodes(model).graph.node}


def test_a_root_divided_by_x_is_no_gelu() -> None:
    """The nodes stay if erf reads √2 / x instead of x / √2."""
    model = gelu("p = Mul(x, s) y = Mul(p, half)")
    division = next(node for node in model.graph.node if node.op_type == "Div")
    division.input[:] = ["root", "x"]
    assert "Gelu" not in {node.op_type for node in with_single_nodes(model).graph.node}
