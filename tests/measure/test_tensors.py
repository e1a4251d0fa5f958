"""Tensors on the CPU: values arrive as they are, bfloat16 too."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper

from epochcost.measure.session import BFLOAT16, allocate, copy_into
from epochcost.plan.trial import SessionSettings

PLAIN = SessionSettings(threads=1)


@pytest.mark.parametrize("dtype", ["f4", "f2", "i8", "u1", "?"])
def test_values_are_copied(dtype: str) -> None:
    """What NumPy holds is what the device holds, of its own."""
    array = np.array([[0, 1], [2, 3]]).astype(dtype)
    value = allocate(array.shape, array.dtype, "cpu")
    copy_into(value, array, PLAIN)
    np.testing.assert_array_equal(value.numpy(), array)


def test_bfloat16_arrives_exactly() -> None:
    """Read back by a Cast, since ONNX Runtime hands NumPy no bfloat16."""
    array = np.array([[0.5, -3.0, 1e30], [65536, 0, 1.0078125]], "f4").astype(BFLOAT16)
    value = allocate(array.shape, array.dtype, "cpu")
    copy_into(value, array, PLAIN)
    assert value.data_type() == "tensor(bfloat16)"
    graph = helper.make_graph(
        [helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT)],
        "back",
        [helper.make_tensor_value_info("x", TensorProto.BFLOAT16, [2, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])],
    )
    opsets = [helper.make_opsetid("", 18)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (back,) = session.run_with_ort_values(None, {"x": value})
    np.testing.assert_array_equal(back.numpy(), array.astype("f4"))
