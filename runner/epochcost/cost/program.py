"""A price plan's bill as a program: expressions that Python and a browser evaluate alike.

A program is JSON. ``inputs`` are names with their defaults: the usage, and the plan's figures that
a reader may change. ``values`` name expressions, evaluated when asked for; ``lines`` are the bill's
labels with their amounts. An expression is a number, a name, or a list that begins with an operator
(`OPERATORS`). What a plan's expressions say is in `cost.program_terms`; the other interpreter is
the site's bill.js, and tests hold the two together and both to `cost.bill`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from types import MappingProxyType
from typing import Any

from epochcost.cost.money import exact_arithmetic

Json = Any
FORMAT = 1
# Below it exp(x) - 1 is x to 30 digits, and would lose the digits of CONTEXT otherwise.
_TINY = Decimal("1e-30")
# A browser's 3.0000000000000004 steps are 3: both interpreters take so much off before rounding up,
# and add it before rounding down.
_SLACK = Decimal("1e-12")


@dataclass(frozen=True, slots=True)
class Expression:
    """A formula in the making: operators on it give longer ones; ``json`` is what is emitted."""

    json: Json

    def __add__(self, other: Term) -> Expression:
        return _of("+", self, other)

    def __radd__(self, other: Term) -> Expression:
        return _of("+", other, self)

    def __sub__(self, other: Term) -> Expression:
        return _of("-", self, other)

    def __rsub__(self, other: Term) -> Expression:
        return _of("-", other, self)

    def __mul__(self, other: Term) -> Expression:
        return _of("*", self, other)

    def __rmul__(self, other: Term) -> Expression:
        return _of("*", other, self)

    def __truediv__(self, other: Term) -> Expression:
        return _of("/", self, other)

    def __rtruediv__(self, other: Term) -> Expression:
        return _of("/", other, self)

    def __neg__(self) -> Expression:
        return _of("-", 0, self)


Term = Expression | Decimal | int


def name(text: str) -> Expression:
    """An input or a value by its name."""
    return Expression(text)


def exp(exponent: Term) -> Expression:
    """Raise e to the exponent."""
    return _of("exp", exponent)


def grown(exponent: Term) -> Expression:
    """exp(x) - 1, to all digits of a small x."""
    return _of("expm1", exponent)


def lost(exponent: Term) -> Expression:
    """1 - exp(-x), to all digits of a small x."""
    return -_of("expm1", _of("-", 0, exponent))


def sqrt(square: Term) -> Expression:
    """The square root."""
    return _of("sqrt", square)


def power(base: Term, exponent: Term) -> Expression:
    """Base to a whole exponent."""
    return _of("^", base, exponent)


def ceiling(value: Term) -> Expression:
    """The next whole number; what is beyond one by a binary rounding only is that one."""
    return _of("ceil", value)


def floor(value: Term) -> Expression:
    """The whole number before; what lacks to one by a binary rounding only is that one."""
    return _of("floor", value)


def largest(*values: Term) -> Expression:
    """The largest of the values."""
    return _of("max", *values)


def smallest(*values: Term) -> Expression:
    """The smallest of the values."""
    return _of("min", *values)


def where(left: Term, comparison: str, right: Term, then: Term, otherwise: Term) -> Expression:
    """``then`` where the comparison ("<", "<=", "==") holds, else ``otherwise``."""
    return _of("if", _of(comparison, left, right), then, otherwise)


def fold(count: Term, states: Mapping[str, tuple[Term, Term]], term: Term) -> Expression:
    """The sum of ``term`` over `i` = 0 … count - 1, while each state goes on to its next value.

    ``states`` maps a name to its first value and to the expression of the one that follows; all
    change at once. ``term`` and the expressions may name `i` and the states.
    """
    table = {key: [_json(first), _json(then)] for key, (first, then) in states.items()}
    return Expression(["sum", _json(count), table, _json(term)])


def _of(operator: str, *operands: Term) -> Expression:
    return Expression([operator, *(_json(operand) for operand in operands)])


def _json(term: Term) -> Json:
    if isinstance(term, Expression):
        return term.json
    value = Decimal(term)
    return int(value) if value == value.to_integral_value() else float(value)


@dataclass(frozen=True, slots=True)
class Program:
    """What a plan bills: inputs with defaults, named values, lines, and the time on the wall."""

    price: str
    currency: str
    inputs: Mapping[str, Decimal]
    values: Mapping[str, Expression]
    lines: tuple[tuple[str, Expression], ...]
    elapsed_seconds: Expression

    @property
    def json(self) -> Json:
        """The program as it is published."""
        return {
            "format": FORMAT,
            "price": self.price,
            "currency": self.currency,
            "inputs": {key: _json(value) for key, value in self.inputs.items()},
            "values": {key: value.json for key, value in self.values.items()},
            "lines": [[label, amount.json] for label, amount in self.lines],
            "elapsed_seconds": self.elapsed_seconds.json,
        }


@dataclass(frozen=True, slots=True)
class Bill:
    """What a program says of one usage: its lines' amounts, their sum, and seconds on the wall."""

    lines: tuple[tuple[str, Decimal], ...]
    elapsed_seconds: Decimal

    @property
    def total(self) -> Decimal:
        """The sum of the amounts."""
        with exact_arithmetic():
            return sum((amount for _, amount in self.lines), Decimal(0))


def run(program: Json, usage: Mapping[str, Decimal]) -> Bill:
    """Evaluate an emitted program; ``usage`` replaces the defaults of its inputs.

    Raises InputError where figures overflow, KeyError on a name that the program does not have.
    """
    inputs = {key: Decimal(str(value)) for key, value in program["inputs"].items()}
    with exact_arithmetic():
        names = _Names(program["values"], {**inputs, **usage})
        lines = tuple((label, _value(amount, names)) for label, amount in program["lines"])
        return Bill(lines, _value(program["elapsed_seconds"], names))


class _Names:
    """Named values, each evaluated when it is first asked for: a branch not taken costs nothing."""

    def __init__(self, expressions: Mapping[str, Json], known: Mapping[str, Decimal]) -> None:
        self._expressions = expressions
        self._known = dict(known)

    def __getitem__(self, key: str) -> Decimal:
        if key not in self._known:
            self._known[key] = _value(self._expressions[key], self)
        return self._known[key]

    def within(self, states: Mapping[str, Decimal]) -> _Names:
        """The same names with a fold's states before them."""
        return _Names(self._expressions, {**self._known, **states})


def _value(expression: Json, names: _Names) -> Decimal:
    if isinstance(expression, str):
        return names[expression]
    if not isinstance(expression, list):
        return Decimal(str(expression))
    operator, *operands = expression
    if operator == "if":
        condition, then, otherwise = operands
        return _value(then if _holds(condition, names) else otherwise, names)
    if operator == "sum":
        return _sum(operands, names)
    return OPERATORS[operator](*(_value(operand, names) for operand in operands))


def _holds(condition: Json, names: _Names) -> bool:
    comparison, left, right = condition
    return _COMPARISONS[comparison](_value(left, names), _value(right, names))


def _sum(operands: Json, names: _Names) -> Decimal:
    count, table, term = operands
    states = {key: _value(first, names) for key, (first, _) in table.items()}
    total = Decimal(0)
    for index in range(int(_value(count, names))):
        inside = names.within({**states, "i": Decimal(index)})
        total += _value(term, inside)
        states = {key: _value(then, inside) for key, (_, then) in table.items()}
    return total


OPERATORS: Mapping[str, Callable[..., Decimal]] = MappingProxyType(
    {
        "+": lambda left, right: left + right,
        "-": lambda left, right: left - right,
        "*": lambda left, right: left * right,
        "/": lambda left, right: left / right,
        "^": lambda base, exponent: base**exponent,
        "exp": lambda exponent: exponent.exp(),
        "expm1": lambda exponent: exponent if abs(exponent) < _TINY else exponent.exp() - 1,
        "sqrt": lambda square: square.sqrt(),
        "ceil": lambda value: (value * (1 - _SLACK)).to_integral_value(ROUND_CEILING),
        "floor": lambda value: (value * (1 + _SLACK)).to_integral_value(ROUND_FLOOR),
        "max": lambda *values: max(values),
        "min": lambda *values: min(values),
    }
)
_COMPARISONS: Mapping[str, Callable[[Decimal, Decimal], bool]] = MappingProxyType(
    {
        "<": lambda left, right: left < right,
        "<=": lambda left, right: left <= right,
        "==": lambda left, right: left == right,
    }
)
