"""Compare a training step built for a provider with a portable step, which is built for none.

ONNX Runtime's CPU provider runs both steps, even a step built for CUDA.
"""

from __future__ import annotations

import numpy as np
import onnx

from graph_text import random_inputs, run
from onnxstep import Provider, StepOptions, training_step
from onnxstep.graphs.cuda_kernels import check_kernels


def portable_and_special(
    model: onnx.ModelProto, provider: Provider, *, blocked_convolutions: bool = False
) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """A model's portable training step, and the model's step for ``provider``."""
    portable, special = (
        training_step(
            model,
            StepOptions(loss="mse", provider=p, blocked_convolutions=blocked_convolutions),
        ).model
        for p in (None, provider)
    )
    return portable, special


def assert_alike(
    portable: onnx.ModelProto, special: onnx.ModelProto, tolerance: float = 2e-5
) -> None:
    """Assert that both steps compute the same outputs from random inputs.

    ``tolerance`` is relative to the largest element of an output.
    """
    feeds = random_inputs(special)
    expected, got = run(portable, feeds), run(special, feeds)
    assert got.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(
            got[name], value, atol=tolerance * np.abs(value).max(), err_msg=name
        )


def assert_alike_on_cuda(portable: onnx.ModelProto, cuda: onnx.ModelProto) -> None:
    """Assert that ``cuda`` has CUDA kernels for all nodes and gives the outputs of ``portable``."""
    assert not check_kernels(cuda).on_host
    assert_alike(portable, cuda, tolerance=2e-6)
