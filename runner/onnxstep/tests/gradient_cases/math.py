"""Test cases of arithmetic and elementary functions for all branches of the gradient rules."""

from __future__ import annotations

import numpy as np

from gradient_check import Case

BROADCASTS = [((2, 3), (2, 3)), ((2, 3), (3,)), ((3,), (2, 3)), ((2, 1, 3), (4, 1)), ((2, 3), ())]
# Smooth intervals of each function of one variable.
DOMAINS = {
    "Abs": (0.1, 2.0),
    "Acos": (-0.9, 0.9),
    "Acosh": (1.2, 3.0),
    "Asin": (-0.9, 0.9),
    "Asinh": (-2.0, 2.0),
    "Atan": (-2.0, 2.0),
    "Atanh": (-0.9, 0.9),
    "Cos": (-2.0, 2.0),
    "Cosh": (-2.0, 2.0),
    "Erf": (-2.0, 2.0),
    "Exp": (-2.0, 2.0),
    "Identity": (-2.0, 2.0),
    "Log": (0.1, 2.0),
    "Neg": (-2.0, 2.0),
    "Reciprocal": (0.2, 2.0),
    "Sin": (-2.0, 2.0),
    "Sinh": (-2.0, 2.0),
    "Sqrt": (0.1, 2.0),
    "Tan": (-1.2, 1.2),
}
CASES = [
    *(
        Case(op, {"a": a, "b": b}, low=0.5, high=2.0)
        for op in ("Add", "Sub", "Mul", "Div", "Pow")
        for a, b in BROADCASTS
    ),
    Case("Add", {"a": (0, 3), "b": (1, 0, 3)}),
    *(Case(op, {"x": (2, 3, 2)}, low=low, high=high) for op, (low, high) in DOMAINS.items()),
    Case("Abs", {"x": (2, 3)}, low=-2.0, high=-0.1, name="negative"),
    *(
        Case(
            "Pow",
            {"x": (2, 3)},
            fixed={"exponent": np.array([b])},
            low=0.5,
            high=2.0,
            name=f"x^{b}",
        )
        for b in (-1.5, 0.0, 0.5, 1.0, 1.7, 2.0, 3.0)
    ),
    Case("Pow", {"x": (2, 3)}, fixed={"exponent": np.array(3)}, name="integer_exponent"),
    Case("Pow", {"x": (2, 3)}, fixed={"exponent": np.array([0, 2, 3])}, name="integer_exponents"),
    Case("Pow", {"x": (2, 3)}, fixed={"base": np.array(2.0)}, inputs=("base", "x"), name="2^x"),
    Case("Mod", {"a": (3, 4), "b": (4,)}, {"fmod": 1}, low=0.5, high=9.0),
    Case("Mod", {"a": (3, 4)}, {"fmod": 1}, fixed={"b": np.array(-0.3)}, name="negative_divisor"),
    Case("Sum", {"a": (2, 3), "b": (3,), "c": (2, 1)}),
    Case("Mean", {"a": (2, 3), "b": (3,), "c": (2, 1)}),
    Case("Mean", {"a": (2, 3)}, name="single"),
]
