"""The cases of all gradient rules; each operator family has a module, as in `onnxstep.rules`."""

from gradient_cases import (
    activation,
    contrib,
    convolution,
    indexing,
    linear,
    math,
    normal,
    pooling,
    recurrent,
    reduction,
    resize,
    selection,
    shape,
    slicing,
)
from gradient_check import Case

FAMILIES = (
    activation,
    contrib,
    convolution,
    indexing,
    linear,
    math,
    normal,
    pooling,
    recurrent,
    reduction,
    resize,
    selection,
    shape,
    slicing,
)
CASES: list[Case] = [case for family in FAMILIES for case in family.CASES]
