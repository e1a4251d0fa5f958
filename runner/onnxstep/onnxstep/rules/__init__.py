"""The derivatives of ONNX operators, with a module for each family of ONNX's documentation.

Importing this package fills the table in ``registry``. A docstring such as D(sin x) = cos x dx has
the differential of an operator's result; its rule multiplies the cotangent dy by the factors of dx.
"""

from onnxstep.rules import (  # noqa: F401
    activation,
    contrib,
    convolution,
    few_bits,
    indexing,
    linear,
    math,
    no_gradient,
    normal,
    pooling,
    recurrent,
    reduction,
    resampling,
    shape,
)
