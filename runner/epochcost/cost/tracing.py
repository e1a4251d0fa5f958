"""Numbers in the formulas of bills: Decimals, or symbols that record the formula.

Formulas are annotated with Decimal; with symbols, they return an `Expression`. They use only
arithmetic and this module's functions, with `where` instead of ``if``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from decimal import ROUND_CEILING, Decimal
from typing import Any, TypeVar, cast

T = TypeVar("T")

# For a smaller x, 1 - exp(-x) equals x to 30 digits, and a subtraction would lose digits.
_TINY = Decimal("1e-30")
_ZERO = Decimal(0)


class Expression:
    """A formula as an operator and its operands, each a number or an expression.

    ``operator`` is one of ``+ - * / exp expm1 log sqrt ceil max min if < <=``. A symbol has the
    operator "name" and a single operand, the symbol's name.
    """

    __slots__ = ("operands", "operator")

    def __init__(self, operator: str, *operands: Any) -> None:
        self.operator, self.operands = operator, operands

    def __add__(self, operand: Any) -> Any:
        return self if _is(operand, 0) else Expression("+", self, operand)

    __radd__ = __add__

    def __sub__(self, operand: Any) -> Any:
        if operand is self:
            return _ZERO
        return self if _is(operand, 0) else Expression("-", self, operand)

    def __rsub__(self, operand: Any) -> Expression:
        return Expression("-", operand, self)

    def __mul__(self, operand: Any) -> Any:
        if _is(operand, 0):
            return _ZERO
        return self if _is(operand, 1) else Expression("*", operand, self)

    __rmul__ = __mul__

    def __truediv__(self, operand: Any) -> Any:
        return self if _is(operand, 1) else Expression("/", self, operand)

    def __rtruediv__(self, operand: Any) -> Any:
        return _ZERO if _is(operand, 0) else Expression("/", operand, self)

    def __neg__(self) -> Expression:
        return Expression("-", 0, self)

    def __lt__(self, operand: Any) -> Condition:
        return Condition("<", self, operand)

    def __le__(self, operand: Any) -> Condition:
        return Condition("<=", self, operand)

    def __gt__(self, operand: Any) -> Condition:
        return Condition("<", operand, self)

    def __ge__(self, operand: Any) -> Condition:
        return Condition("<=", operand, self)

    def __bool__(self) -> bool:
        raise TypeError("a formula has no truth value: expected a `where`")


class Condition(Expression):
    """A comparison of expressions for `where` and `branch`; an ``if`` on it raises TypeError."""

    __slots__ = ()


def symbol(name: str) -> Decimal:
    """A named symbol that formulas accept in place of a number."""
    return cast("Decimal", Expression("name", name))


def is_traced(number: object) -> bool:
    """Whether a number is a symbol, or a formula with symbols."""
    return isinstance(number, Expression)


def is_zero(number: Decimal | int) -> bool:
    """Whether a number is certainly 0; False for a symbol, which may have any value."""
    return number == _ZERO


def is_certain(condition: bool | Condition) -> bool:
    """Whether a condition is known to hold; False for a condition on symbols."""
    return condition is True


def where(condition: bool | Condition, then: Decimal, otherwise: Decimal) -> Decimal:
    """``then`` if the condition holds, else ``otherwise``; for symbols, an "if" formula."""
    return branch(condition, lambda: then, lambda: otherwise)


def branch(condition: bool | Condition, then: Callable[[], T], otherwise: Callable[[], T]) -> T:
    """Call ``then`` if the condition holds, else ``otherwise``, and return the result.

    For a condition on symbols, call both and merge the results: tuples item by item, dataclasses
    field by field. Different results a and b become the formula if(condition, a, b).
    """
    if isinstance(condition, bool):
        return then() if condition else otherwise()
    return cast("T", _either(condition, then(), otherwise()))


def _either(condition: Condition, then: Any, otherwise: Any) -> Any:
    if is_dataclass(then) and not isinstance(then, type):
        chosen = {
            field.name: _either(
                condition, getattr(then, field.name), getattr(otherwise, field.name)
            )
            for field in fields(then)
        }
        return replace(then, **chosen)
    if isinstance(then, tuple):
        return tuple(_either(condition, *pair) for pair in zip(then, otherwise, strict=True))
    same = then is otherwise or not (isinstance(then, Expression) or then != otherwise)
    return then if same else Expression("if", condition, then, otherwise)


def maximum(first: Decimal, second: Decimal) -> Decimal:
    """The larger of two numbers; for a symbol or a formula, the formula "max" of both."""
    return _extreme("max", first >= second, first, second)


def minimum(first: Decimal, second: Decimal) -> Decimal:
    """The smaller of two numbers; for a symbol or a formula, the formula "min" of both."""
    return _extreme("min", first <= second, first, second)


def _extreme(name: str, is_first: bool | Condition, first: Decimal, second: Decimal) -> Decimal:
    if isinstance(is_first, bool):
        return first if is_first else second
    return first if first is second else _traced(name, first, second)


def ceiling(number: Decimal) -> Decimal:
    """The smallest integer that is not below a number."""
    if is_traced(number):
        return _traced("ceil", number)
    return number.to_integral_value(ROUND_CEILING)


def ceil_divide(number: Decimal, step: Decimal) -> Decimal:
    """The exact ceiling of ``number`` / ``step``; raises InvalidOperation for too many digits."""
    if is_traced(number):
        return ceiling(number / step)
    whole, rest = divmod(number, step)
    return whole + (rest > 0)


def square_root(number: Decimal) -> Decimal:
    """The square root of a number."""
    return _traced("sqrt", number) if is_traced(number) else number.sqrt()


def logarithm(number: Decimal) -> Decimal:
    """The natural logarithm of a number."""
    return _traced("log", number) if is_traced(number) else number.ln()


def exponential(exponent: Decimal) -> Decimal:
    """The number e to the power ``exponent``, computed within `exact_arithmetic`."""
    return _traced("exp", exponent) if is_traced(exponent) else exponent.exp()


def expm1(exponent: Decimal) -> Decimal:
    """The number exp(exponent) - 1 for exponent >= 0, to all digits within `exact_arithmetic`."""
    if is_traced(exponent):
        return _traced("expm1", exponent)
    return exponent if exponent < _TINY else exponent.exp() - 1


def one_minus_exp(exponent: Decimal) -> Decimal:
    """The probability 1 - exp(-exponent) for exponent >= 0, exact within `exact_arithmetic`."""
    if is_traced(exponent):
        return -_traced("expm1", -exponent)
    return exponent if exponent < _TINY else 1 - (-exponent).exp()


def _traced(operator: str, *operands: Any) -> Decimal:
    return cast("Decimal", Expression(operator, *operands))


def _is(operand: Any, value: int) -> bool:
    return not isinstance(operand, Expression) and operand == value
