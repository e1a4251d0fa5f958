"""What the machine can do at most: multiply matrices, and copy memory, on some threads."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper

_SIDE = 2048
_COPY_BYTES = 512 * 2**20
_TIMES = 7


def measure_ceilings(threads: int) -> dict[str, float]:
    """``flops`` of a product of two float32 matrices of 2048 and ``copy_bytes`` a second.

    Both by ONNX Runtime's CPU provider; a copy of 512 MB counts what is read and what is written.
    Medians of 7.
    """
    square = (_SIDE, _SIDE)
    a, b = (np.random.default_rng(seed).random(square, np.float32) for seed in (0, 1))
    product = _session("MatMul", [square, square], square, threads)
    whole = (_COPY_BYTES // 4,)
    # Negation is a copy that the runtime spreads over its threads.
    copy = _session("Neg", [whole], whole, threads)
    source = np.ones(whole, np.float32)
    return {
        "flops": 2 * _SIDE**3 / _seconds(lambda: product.run(None, {"x0": a, "x1": b})),
        "copy_bytes": 2 * _COPY_BYTES / _bound_seconds(copy, source),
    }


def _bound_seconds(session: ort.InferenceSession, source: np.ndarray) -> float:
    """With the output bound beforehand: the pages of a new array would be counted as well."""
    binding = session.io_binding()
    binding.bind_ortvalue_input("x0", ort.OrtValue.ortvalue_from_numpy(source))
    binding.bind_ortvalue_output("y", ort.OrtValue.ortvalue_from_numpy(np.empty_like(source)))
    return _seconds(lambda: session.run_with_iobinding(binding))


def _seconds(work: Callable[[], object]) -> float:
    work()
    found = []
    for _ in range(_TIMES):
        begun = time.perf_counter()
        work()
        found.append(time.perf_counter() - begun)
    return statistics.median(found)


def _session(
    operator: str, inputs: list[tuple[int, ...]], output: tuple[int, ...], threads: int
) -> ort.InferenceSession:
    names = [f"x{index}" for index in range(len(inputs))]
    values = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in zip(names, inputs, strict=True)
    ]
    graph = helper.make_graph(
        [helper.make_node(operator, names, ["y"])],
        operator,
        values,
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, output)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    return ort.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
