"""Einsum equations have the meaning that numpy gives them."""

from __future__ import annotations

import numpy as np
import pytest

from onnxstep.errors import ModelError
from onnxstep.rules.linear import Equation, parse


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("ij, jk", [(2, 3), (3, 4)]),
        ("...ij,...jk", [(2, 1, 2, 3), (5, 3, 2)]),
        ("i...->...", [(2, 3, 4)]),
        ("Ba", [(2, 3)]),
        ("iij", [(3, 3, 2)]),
    ],
)
def test_an_explicit_equation_means_the_same(text: str, shapes: list[tuple[int, ...]]) -> None:
    """The explicit equation that ``parse`` returns gives the results of ``text``."""
    rng = np.random.default_rng(1)
    operands = [rng.standard_normal(shape) for shape in shapes]
    read = parse(text, [len(shape) for shape in shapes])
    explicit = f"{','.join(read.terms)}->{read.result}"
    assert "." not in explicit
    np.testing.assert_allclose(np.einsum(explicit, *operands), np.einsum(text, *operands))


def test_letters_for_an_ellipsis_are_not_used_yet() -> None:
    """An ellipsis is replaced by the first letters that the equation does not use."""
    assert parse("a...,b...", [3, 2]) == Equation(("acd", "bd"), "cdab")


@pytest.mark.parametrize(("text", "ranks"), [("ij", [3]), ("i,j", [1]), ("i...j", [1])])
def test_an_equation_that_does_not_fit_is_refused(text: str, ranks: list[int]) -> None:
    """An equation that does not fit the number of operands or their ranks is refused."""
    with pytest.raises(ModelError, match="does not fit"):
        parse(text, ranks)
