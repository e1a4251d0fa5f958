"""Check the gradients of operators against finite differences along random directions.

For a model f, direction v and cotangents u: v · VJP(u) = d/dt u · f(x + t v) at t = 0. The right
side is a central difference in float64. The left side is `vjp_graph`, in float64 and float32.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from contrib_reference import CONTRIBUTED
from exact_operators import OPERATORS
from graph_text import Array, run
from onnxstep import vjp_graph
from oracle.evaluators import reference
from oracle.judge import errors
from oracle.slope import slopes
from recurrent_reference import RECURRENT

Feeds = Mapping[str, Array]
# For a step h, central differences have an error of h² and a rounding error of about 1e-16 / h. A
# step of 1e-5 keeps both near 1e-10 in float64.
STEP = 1e-5
_MORE_OPERATORS = [*OPERATORS, *RECURRENT, *CONTRIBUTED]


@dataclass(frozen=True)
class Case:
    """An operator with attributes and inputs, as a case for the gradient check.

    ``shapes`` has the shapes of the differentiated inputs, which get random elements between
    ``low`` and ``high``. ``fixed`` has the constant inputs. ``inputs`` lists all inputs in the
    operator's order ("" for an omitted input); by default, ``shapes`` come before ``fixed``.
    ``outputs`` is the number of outputs, or their names ("" for an omitted output).

    The check differentiates a float64 and a float32 model of the operator. ``exact_opset`` is the
    opset of the float64 model, if it differs from ``opset``. ``reference_flaw`` says why onnx's
    reference evaluator cannot compute the float64 gradients ("" if it can). ``runtime_flaw`` says
    why ONNX Runtime cannot run the float32 model.
    """

    op_type: str
    shapes: Mapping[str, tuple[int, ...]]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    fixed: Mapping[str, Array] = field(default_factory=dict)
    inputs: Sequence[str] = ()
    outputs: int | Sequence[str] = 1
    low: float = -1.0
    high: float = 1.0
    opset: int = 21
    name: str = ""
    reference_flaw: str = ""
    exact_opset: int | None = None
    runtime_flaw: str = ""
    domain: str = ""

    @property
    def id(self) -> str:
        """The name of the case in pytest."""
        shapes = "x".join("_".join(map(str, s)) or "scalar" for s in self.shapes.values())
        prefix = f"{self.domain}." if self.domain else ""
        return f"{prefix}{self.op_type}-{self.opset}-{self.name or shapes}"


def ints(*numbers: int) -> Array:
    """An int64 vector, for inputs such as shapes, axes and indices."""
    return np.array(numbers, dtype=np.int64)


def model_of(
    case: Case, elem_type: int = TensorProto.DOUBLE, opset: int | None = None
) -> onnx.ModelProto:
    """The case as a model of a single node, in which all floats have the type ``elem_type``."""
    names = list(case.inputs) or [*case.shapes, *case.fixed]
    outputs = (
        [f"y{index}" for index in range(case.outputs)]
        if isinstance(case.outputs, int)
        else case.outputs
    )
    graph = helper.make_graph(
        [helper.make_node(case.op_type, names, outputs, domain=case.domain, **case.attributes)],
        "case",
        [
            helper.make_tensor_value_info(name, elem_type, list(shape))
            for name, shape in case.shapes.items()
        ],
        [helper.make_empty_tensor_value_info(name) for name in outputs if name],
        [_tensor(name, array, elem_type) for name, array in case.fixed.items()],
    )
    imports = {"": opset or case.opset} | ({case.domain: 1} if case.domain else {})
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid(*entry) for entry in imports.items()],
        ir_version=10,
    )
    return onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)


def _tensor(name: str, array: Array, elem_type: int) -> onnx.TensorProto:
    if array.dtype == np.float64:
        array = array.astype(helper.tensor_dtype_to_np_dtype(elem_type))
    return numpy_helper.from_array(array, name)


def draw(case: Case, seed: int) -> dict[str, Array]:
    """Random inputs whose elements are far apart, so that no maximum is close to a tie."""
    rng = np.random.default_rng(seed)
    inputs = {}
    for name, shape in case.shapes.items():
        size = int(np.prod(shape))
        grid = np.linspace(case.low, case.high, 2 * size + 2)[1:-1:2]
        jitter = rng.uniform(-0.2, 0.2, size) * (case.high - case.low) / (2 * size + 2)
        inputs[name] = (rng.permutation(grid) + jitter).reshape(shape)
    return inputs


def check(case: Case, seed: int) -> None:
    """Assert that the gradients of ``case`` agree with finite differences.

    The gradients come from the reference evaluator in float64 and from ONNX Runtime in float32. The
    outputs of ONNX Runtime must also agree with those of the reference evaluator.
    """
    inputs, exact = draw(case, seed), model_of(case, opset=case.exact_opset)
    forward = reference(exact, _MORE_OPERATORS)
    outputs = forward(inputs)
    measured = slopes(forward, inputs, list(outputs), seed + 1, STEP)
    feeds = {**inputs, **{f"{name}_cotangent": u for name, u in measured.cotangents.items()}}
    if not case.runtime_flaw:
        got = _in_float32(vjp_graph(model_of(case, TensorProto.FLOAT), list(inputs)), feeds)
        for name, y in outputs.items():
            np.testing.assert_allclose(got[name], y, rtol=1e-4, atol=1e-4, err_msg=name)
        assert list(errors(got, measured.by_input, tolerance=1e-4, floor=1e-5)) == []
    if not case.reference_flaw:
        got = reference(vjp_graph(exact, list(inputs)), _MORE_OPERATORS)(feeds)
        assert list(errors(got, measured.by_input, tolerance=1e-7, floor=0)) == []


def _in_float32(model: onnx.ModelProto, feeds: Feeds) -> dict[str, Array]:
    types = {value.name: value.type.tensor_type.elem_type for value in model.graph.input}
    return run(
        model,
        {
            name: x.astype("f4") if types[name] == TensorProto.FLOAT else x
            for name, x in feeds.items()
            if name in types
        },
    )
