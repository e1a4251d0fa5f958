"""The derivatives of ONNX operators, with a module for each family of operators.

Importing this package fills the table in ``registry``. A gradient rule gets ``dy``, the gradient of
the loss with respect to the node's result. The rule returns the gradients with respect to the
inputs. A docstring such as d(sin x) = cos x dx has the differential of the result; the rule
multiplies dy by the factor of dx.
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
