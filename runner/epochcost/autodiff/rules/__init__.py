"""The derivatives of ONNX operators, one module per family of ONNX's operator documentation.

Importing this package fills the registry.
"""

from epochcost.autodiff.rules import (
    activation,
    attention,
    contrib,
    control,
    convolution,
    generator,
    indexing,
    linear,
    math,
    ml,
    normal,
    pooling,
    quantization,
    recurrent,
    reduction,
    resize,
    sampling,
    selection,
    shape,
    signal,
    slicing,
)

__all__ = [
    "activation",
    "attention",
    "contrib",
    "control",
    "convolution",
    "generator",
    "indexing",
    "linear",
    "math",
    "ml",
    "normal",
    "pooling",
    "quantization",
    "recurrent",
    "reduction",
    "resize",
    "sampling",
    "selection",
    "shape",
    "signal",
    "slicing",
]
