"""Formulas give the same for numbers and for symbols that get their numbers later."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bill_programs import answers
from epochcost.cost.money import exact_arithmetic
from epochcost.cost.program import answers_program
from epochcost.cost.schedule import Schedule
from epochcost.cost.tracing import (
    branch,
    ceil_divide,
    ceiling,
    expm1,
    exponential,
    is_certain,
    is_zero,
    maximum,
    minimum,
    one_minus_exp,
    square_root,
    symbol,
    where,
)

ZERO, HALF = Decimal(0), Decimal("0.5")


def published(traced: Decimal) -> dict[str, object]:
    """The published program of one traced line."""
    program = answers_program({"line": traced})
    emitted: dict[str, object] = json.loads(json.dumps(program, allow_nan=False))
    return emitted


def chosen(x: Decimal) -> Decimal:
    """A sum of fields of a record that a branch chooses, one of them chosen by ``where``."""

    def short() -> Schedule:
        return Schedule(x, ZERO, x * 2, x)

    def long() -> Schedule:
        return Schedule(x, ZERO, where(x > 50, x - 50, x), x + 1)

    schedule = branch(x <= 10, short, long)
    return schedule.billed_seconds + schedule.elapsed_seconds


@pytest.mark.parametrize(
    "formula",
    [
        lambda x: (1 - x / 3) * 2 - (-x) + 0 * x,
        lambda x: exponential(-x) + expm1(x / 100) + one_minus_exp(x) + square_root(x),
        lambda x: ceiling(x) + ceil_divide(x, HALF),
        lambda x: maximum(x, Decimal(40)) + minimum(x, Decimal(7)) + maximum(x, x),
        lambda x: where(x < 20, x, Decimal(3)) + where(x >= 60, Decimal(5), x * x),
        chosen,
    ],
)
@given(x=st.integers(1, 8_000).map(lambda number: Decimal(number) / 100 + Decimal("1e-3")))
def test_a_traced_formula_is_the_formula(formula: Callable[[Decimal], Decimal], x: Decimal) -> None:
    """The published program gives the same result as the formula of the number."""
    with exact_arithmetic():
        meant = formula(x)
        program = published(formula(symbol("x")))
    said = answers(program, {"x": x})["line"]
    assert abs(said - meant) <= Decimal("1e-12") * max(abs(meant), Decimal(1))


def test_a_formula_may_not_ask_for_what_only_a_number_knows() -> None:
    """Comparing a symbol in a branch is refused: one outcome would be published for all."""
    x = symbol("x")
    with pytest.raises(TypeError, match="expected a `where`"):
        max(x, ZERO)
    with pytest.raises(TypeError, match="expected a `where`"):
        bool(x)
    assert not is_certain(x > 3)
    assert is_certain(Decimal(4) > 3)
    assert not is_zero(x)
    assert is_zero(x * 0)
    assert is_zero(x - x)


def test_a_formula_that_occurs_often_is_published_once() -> None:
    """A formula that occurs several times is published as one named value."""
    x = symbol("x")
    again = exponential(x / 3)
    program = published(ceiling(x) * again + again + exponential(symbol("x") / 3))
    values = program["values"]
    assert isinstance(values, dict)
    assert [value[0] for value in values.values()] == ["exp"]
    assert json.dumps(program).count("exp") == 1
