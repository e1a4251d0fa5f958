"""The derivatives of ONNX operators, with a module for each family of operators.

Importing this package fills the table in ``registry``. A rule turns ``dy``, the gradient at the
result, into gradients at the inputs: for d(sin x) = cos x dx, the rule returns dy · cos x.
"""

from onnxstep.rules import (  # noqa: F401
    activation,
    batch_normal,
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
