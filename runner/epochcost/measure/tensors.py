"""Tensors on a device: room for them, and values copied into it, bfloat16 included.

ONNX Runtime's Python interface copies no bfloat16 from NumPy; a graph of one Cast, which reads the
values in fp32 and writes them where they belong, does. What is bound where is left to ``stepping``
and ``serving``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from numpy.typing import NDArray
from onnx import TensorProto, helper

from epochcost.measure.session import open_session
from epochcost.plan.trial import SessionSettings
from epochcost.specs.study import Provider

BFLOAT16 = np.dtype(helper.tensor_dtype_to_np_dtype(TensorProto.BFLOAT16))
_BFLOAT16_TYPE = "tensor(bfloat16)"


def room(
    shape: tuple[int, ...], dtype: np.dtype[Any], device: str, number: int = 0
) -> ort.OrtValue:
    """An uninitialised tensor on the device of that name and number."""
    kind = TensorProto.BFLOAT16 if dtype == BFLOAT16 else dtype
    return ort.OrtValue.ortvalue_from_shape_and_type(shape, kind, device, number)


def fill(value: ort.OrtValue, array: NDArray[Any], settings: SessionSettings) -> None:
    """Copy an array of the same shape and type into what ``room`` made."""
    if value.data_type() == _BFLOAT16_TYPE:
        _fill_bfloat16(value, array, settings)
    else:
        value.update_inplace(np.ascontiguousarray(array))


def _fill_bfloat16(value: ort.OrtValue, array: NDArray[Any], settings: SessionSettings) -> None:
    provider: Provider = "cpu" if value.device_name() == "cpu" else "cuda"
    plain = SessionSettings(threads=settings.threads, device=settings.device)
    session = open_session(_cast(array.shape).SerializeToString(), provider, plain)
    binding = session.io_binding()
    binding.bind_cpu_input("x", np.ascontiguousarray(array, np.float32))
    binding.bind_ortvalue_output("y", value)
    session.run_with_iobinding(binding)
    binding.synchronize_outputs()


def _cast(shape: tuple[int, ...]) -> onnx.ModelProto:
    graph = helper.make_graph(
        [helper.make_node("Cast", ["x"], ["y"], to=TensorProto.BFLOAT16)],
        "to_bfloat16",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.BFLOAT16, shape)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
