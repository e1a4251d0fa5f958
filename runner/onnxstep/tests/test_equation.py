"""An ellipsis in an Einsum equation becomes unused letters; unsuitable equations are refused."""

from __future__ import annotations

import pytest

from onnxstep.errors import ModelError
from onnxstep.rules.linear import Equation, parse


def test_letters_for_an_ellipsis_are_not_used_yet() -> None:
    """An ellipsis is replaced by the first letters that the equation does not use."""
    assert parse("a...,b...", [3, 2]) == Equation(("acd", "bd"), "cdab")


@pytest.mark.parametrize(("text", "ranks"), [("ij", [3]), ("i,j", [1]), ("i...j", [1])])
def test_an_equation_that_does_not_fit_is_refused(text: str, ranks: list[int]) -> None:
    """An equation that does not fit the number of operands or their ranks is refused."""
    with pytest.raises(ModelError, match="does not fit"):
        parse(text, ranks)
