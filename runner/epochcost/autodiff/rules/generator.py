"""Operators that make values: constants, ranges, random numbers. None depends on an input's value.

Random draws count as constants of the step, as in PyTorch: Bernoulli passes no gradient to its
probabilities.
"""

from __future__ import annotations

from epochcost.autodiff.registry import refused, zero

for _op_type, _versions in {
    "Constant": (1, 9, 11, 12, 13, 19, 21, 23, 24, 25),
    "ConstantOfShape": (9, 20, 21, 23, 24, 25),
    "EyeLike": (9, 22),
    "RandomNormal": (1, 22),
    "RandomNormalLike": (1, 22),
    "RandomUniform": (1, 22),
    "RandomUniformLike": (1, 22),
    "Bernoulli": (15, 22),
    "Multinomial": (7, 22),
}.items():
    zero(_op_type, _versions)

refused(
    "Range",
    (11, 27),
    reason="its length depends on what is differentiated; freeze that if it is no weight",
)
