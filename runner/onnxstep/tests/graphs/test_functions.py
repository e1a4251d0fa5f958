"""Local functions are inlined unless this would make the graph too large."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from graph_text import model_of_text
from onnxstep.errors import ModelError
from onnxstep.graphs.functions import check_calls, inline_functions
from onnxstep.graphs.loading import load_model

FAULTS = Path(__file__).parents[1] / "faults"
TEXT = "g (float[3] x) => (float[3] y) { y = local.f0(x) }"


def functions(count: int, body: str) -> onnx.ModelProto:
    """A model of ``count`` functions with the given ``body``.

    NEXT in ``body`` becomes the name of the next function, or Relu in the last function.
    """
    texts = [
        f'<domain: "local", opset_import: ["" : 21, "local" : 1]> f{number} (a) => (b) '
        + body.replace("NEXT", f"local.f{number + 1}" if number + 1 < count else "Relu")
        for number in range(count)
    ]
    return model_of_text(TEXT, functions=" ".join(texts))


def test_calls_become_nodes() -> None:
    """Three nested functions with two calls each, the innermost of Relu, become eight Relus."""
    plain = inline_functions(functions(3, "{ c = NEXT(a) b = NEXT(c) }"))
    assert [node.op_type for node in plain.graph.node] == ["Relu"] * 8
    assert not plain.functions


@pytest.mark.parametrize("count", [15, 31])
def test_calls_that_multiply_are_refused_unbuilt(count: int) -> None:
    """If 15 or 31 functions each call the next function twice, inlining is refused beforehand."""
    with pytest.raises(ModelError, match="functions expand to"):
        check_calls(functions(count, "{ c = NEXT(a) b = NEXT(c) }"))


def test_a_bomb_of_functions_is_refused_when_it_is_read() -> None:
    """The loader refuses a file of two kilobytes whose functions would expand to many nodes."""
    with pytest.raises(ModelError, match="functions expand to"):
        load_model(FAULTS / "function_bomb_30.onnx")


def test_what_calls_copy_counts_in_bytes_too() -> None:
    """A model is refused if it makes 4096 calls of a function that has a constant of 1 MiB."""
    model = functions(13, "{ c = NEXT(a) b = NEXT(c) }")
    big = onnx.helper.make_tensor("t", onnx.TensorProto.INT8, [2**20], bytes(2**20), raw=True)
    model.functions[-1].node.append(onnx.helper.make_node("Constant", [], ["k"], value=big))
    with pytest.raises(ModelError, match="functions expand to"):
        check_calls(model)


@pytest.mark.parametrize("count", [1, 2])
def test_functions_that_call_themselves_are_refused(count: int) -> None:
    """A function that calls itself, directly or through another, is refused."""
    model = functions(count, "{ b = NEXT(a) }")
    model.functions[-1].node[0].op_type, model.functions[-1].node[0].domain = "f0", "local"
    with pytest.raises(ModelError, match="calls itself"):
        check_calls(model)


def test_calls_in_branches_count() -> None:
    """Calls in both branches of an If count towards the limit on the size of the inlined graph."""
    branch = "{{ {0} = NEXT(a) }}"
    body = (
        "{ k = Constant<value = bool {1}>() b = If(k) <"
        f"then_branch = t () => (float[3] p) {branch.format('p')}, "
        f"else_branch = e () => (float[3] q) {branch.format('q')}> }}"
    )
    with pytest.raises(ModelError, match="functions expand to"):
        check_calls(functions(20, body))
