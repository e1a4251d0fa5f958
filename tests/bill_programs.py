"""Programs of bills evaluated in Python, to compare with the engine and the browser."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from types import MappingProxyType
from typing import Any

from epochcost.cost.money import exact_arithmetic

Json = Any
# Below it exp(x) - 1 is x to 30 digits, and would lose the digits of CONTEXT otherwise.
_TINY = Decimal("1e-30")
# A browser's 3.0000000000000004 steps are 3: both interpreters take so much off before rounding up.
_SLACK = Decimal("1e-12")


@dataclass(frozen=True, slots=True)
class Bill:
    """A program's bill of one usage: the lines' amounts, their sum, and elapsed seconds."""

    lines: tuple[tuple[str, Decimal], ...]
    elapsed_seconds: Decimal

    @property
    def total(self) -> Decimal:
        """The sum of the amounts."""
        with exact_arithmetic():
            return sum((amount for _, amount in self.lines), Decimal(0))


def run(program: Json, usage: Mapping[str, Decimal]) -> Bill:
    """Evaluate an emitted program; ``usage`` replaces the defaults of its inputs.

    Raises InputError if figures overflow, and KeyError for a name that the program does not have.
    """
    inputs = {key: Decimal(str(value)) for key, value in program["inputs"].items()}
    with exact_arithmetic():
        names = _Names(program["values"], {**inputs, **usage})
        lines = tuple((label, _value(amount, names)) for label, amount in program["lines"])
        return Bill(lines, _value(program["elapsed_seconds"], names))


def answers(program: Json, inputs: Mapping[str, Decimal]) -> dict[str, Decimal]:
    """Evaluate a program that has named answers."""
    with exact_arithmetic():
        names = _Names(program["values"], inputs)
        return {name: _value(figure, names) for name, figure in program["answers"].items()}


class _Names:
    """Named values, each evaluated at its first use, so that other branches are never evaluated."""

    def __init__(self, expressions: Mapping[str, Json], known: Mapping[str, Decimal]) -> None:
        self._expressions = expressions
        self._known = dict(known)

    def __getitem__(self, key: str) -> Decimal:
        if key not in self._known:
            self._known[key] = _value(self._expressions[key], self)
        return self._known[key]


def _value(expression: Json, names: _Names) -> Decimal:
    if isinstance(expression, str):
        return names[expression]
    if not isinstance(expression, list):
        return Decimal(str(expression))
    operator, *operands = expression
    if operator == "if":
        condition, then, otherwise = operands
        return _value(then if _holds(condition, names) else otherwise, names)
    return OPERATORS[operator](*(_value(operand, names) for operand in operands))


def _holds(condition: Json, names: _Names) -> bool:
    comparison, left, right = condition
    return _COMPARISONS[comparison](_value(left, names), _value(right, names))


OPERATORS: Mapping[str, Callable[..., Decimal]] = MappingProxyType(
    {
        "+": lambda left, right: left + right,
        "-": lambda left, right: left - right,
        "*": lambda left, right: left * right,
        "/": lambda left, right: left / right,
        "exp": lambda exponent: exponent.exp(),
        "expm1": lambda exponent: exponent if abs(exponent) < _TINY else exponent.exp() - 1,
        "log": lambda value: value.ln(),
        "sqrt": lambda square: square.sqrt(),
        "ceil": lambda value: (value * (1 - _SLACK)).to_integral_value(ROUND_CEILING),
        "max": lambda *values: max(values),
        "min": lambda *values: min(values),
    }
)
_COMPARISONS: Mapping[str, Callable[[Decimal, Decimal], bool]] = MappingProxyType(
    {
        "<": lambda left, right: left < right,
        "<=": lambda left, right: left <= right,
    }
)
