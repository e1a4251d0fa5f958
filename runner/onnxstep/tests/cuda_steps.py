"""Compare training steps for CUDA with portable steps, both on ONNX Runtime's CPU provider."""

from __future__ import annotations

import numpy as np
import onnx

from graph_text import run
from onnxstep.graphs.cuda_kernels import check_kernels


def assert_alike_on_cuda(plain: onnx.ModelProto, cuda: onnx.ModelProto) -> None:
    """Assert that ``cuda`` has CUDA kernels for all nodes and computes the outputs of ``plain``."""
    assert not check_kernels(cuda).on_host
    rng = np.random.default_rng(7)
    feeds = {
        info.name: rng.standard_normal(
            [dim.dim_value for dim in info.type.tensor_type.shape.dim]
        ).astype(np.float32)
        for info in cuda.graph.input
    }
    expected, got = run(plain, feeds), run(cuda, feeds)
    for name, value in expected.items():
        np.testing.assert_allclose(got[name], value, atol=2e-6 * np.abs(value).max(), err_msg=name)
