"""The derivatives of ONNX operators, one module per family of ONNX's operator documentation.

Importing this package fills the registry.
"""

from onnxstep.rules import (  # noqa: F401
    activation,
    attention,
    contrib,
    convolution,
    few_bits,
    indexing,
    linear,
    math,
    ml,
    no_gradient,
    normal,
    pooling,
    recurrent,
    reduction,
    resampling,
    shape,
    signal,
)
