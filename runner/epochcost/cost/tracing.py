"""The numbers that formulas of bills are written for: Decimals, or symbols that trace the formula.

With Decimals a formula gives an amount. With an `Expression` in the place of one it gives itself,
for `cost.program` to publish. Formulas are annotated with Decimal, and do with it what both can:
arithmetic, and the functions of this module. Whatever depends on a number's value is a `where`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from decimal import ROUND_CEILING, Decimal
from functools import lru_cache
from typing import Any, TypeVar, cast

T = TypeVar("T")

# Below it 1 - exp(-x) is x to 30 digits, and would lose the digits of CONTEXT otherwise.
_TINY = Decimal("1e-30")
_ZERO = Decimal(0)


class Expression:
    """A formula in the making: an operator on operands, each a number or an expression.

    ``operator`` is one of a program's (see `cost.program`), or "name" with a name as its operand.
    """

    __slots__ = ("operands", "operator")

    def __init__(self, operator: str, *operands: Any) -> None:
        self.operator, self.operands = operator, operands

    def __add__(self, other: Any) -> Any:
        return self if _is(other, 0) else Expression("+", self, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if other is self:
            return _ZERO
        return self if _is(other, 0) else Expression("-", self, other)

    def __rsub__(self, other: Any) -> Expression:
        return Expression("-", other, self)

    def __mul__(self, other: Any) -> Any:
        if _is(other, 0):
            return _ZERO
        return self if _is(other, 1) else Expression("*", other, self)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return self if _is(other, 1) else Expression("/", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _ZERO if _is(other, 0) else Expression("/", other, self)

    def __neg__(self) -> Expression:
        return Expression("-", 0, self)

    def __lt__(self, other: Any) -> Condition:
        return Condition("<", self, other)

    def __le__(self, other: Any) -> Condition:
        return Condition("<=", self, other)

    def __gt__(self, other: Any) -> Condition:
        return Condition("<", other, self)

    def __ge__(self, other: Any) -> Condition:
        return Condition("<=", other, self)

    def __bool__(self) -> bool:
        raise TypeError("a formula asked what only a number knows: expected a `where`")


class Condition(Expression):
    """A comparison of expressions, which only `where` can take a branch by."""

    __slots__ = ()


def symbol(name: str) -> Decimal:
    """A name in the place of a number, which any formula takes for one."""
    return cast("Decimal", Expression("name", name))


def is_traced(number: object) -> bool:
    """Whether it is a symbol or a formula of some."""
    return isinstance(number, Expression)


def is_zero(number: Decimal) -> bool:
    """Whether a number is known to be nothing; a symbol, which may be anything, equals none."""
    return number == _ZERO


def is_certain(condition: bool | Condition) -> bool:
    """Whether a condition holds for certain; one on symbols never does."""
    return condition is True


def where(condition: bool | Condition, then: Decimal, otherwise: Decimal) -> Decimal:
    """The first number if the condition holds, else the second."""
    if isinstance(condition, bool):
        return then if condition else otherwise
    return cast("Decimal", _either(condition, then, otherwise))


def branch(condition: bool | Condition, then: Callable[[], T], otherwise: Callable[[], T]) -> T:
    """Evaluate one function if the condition holds, else the other; for symbols both, and choose.

    Records and tuples are chosen item by item; what is the same in both is no choice.
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
    """The larger of two numbers."""
    return _extreme("max", first >= second, first, second)


def minimum(first: Decimal, second: Decimal) -> Decimal:
    """The smaller of two numbers."""
    return _extreme("min", first <= second, first, second)


def _extreme(name: str, is_first: bool | Condition, first: Decimal, second: Decimal) -> Decimal:
    if isinstance(is_first, bool):
        return first if is_first else second
    return first if first is second else _traced(name, first, second)


def ceiling(number: Decimal) -> Decimal:
    """The next whole number."""
    if is_traced(number):
        return _traced("ceil", number)
    return number.to_integral_value(ROUND_CEILING)


def ceil_divide(number: Decimal, step: Decimal) -> Decimal:
    """Count the steps that reach a number; exact, though a quotient would lose a last digit.

    Raises InvalidOperation where the steps have more digits than the context.
    """
    if is_traced(number):
        return ceiling(number / step)
    whole, rest = divmod(number, step)
    return whole + (rest > 0)


def square_root(number: Decimal) -> Decimal:
    """The square root."""
    return _traced("sqrt", number) if is_traced(number) else number.sqrt()


def logarithm(number: Decimal) -> Decimal:
    """The natural logarithm."""
    return _traced("log", number) if is_traced(number) else number.ln()


def exponential(exponent: Decimal) -> Decimal:
    """The power of e; to be called inside `exact_arithmetic`, as the next two."""
    return _traced("exp", exponent) if is_traced(exponent) else _power_of_e(exponent)


def expm1(exponent: Decimal) -> Decimal:
    """exp(x) - 1 of an x of 0 and above, to all digits of a small one."""
    if is_traced(exponent):
        return _traced("expm1", exponent)
    return exponent if exponent < _TINY else _power_of_e(exponent) - 1


def one_minus_exp(exponent: Decimal) -> Decimal:
    """1 - exp(-x) of an x of 0 and above, to all digits of a small one: a chance to be stopped."""
    if is_traced(exponent):
        return -_traced("expm1", -exponent)
    return exponent if exponent < _TINY else 1 - _power_of_e(-exponent)


@lru_cache(maxsize=1024)
def _power_of_e(exponent: Decimal) -> Decimal:
    """Kept, as it takes a while to 60 digits and a plan's own powers come again."""
    return exponent.exp()


def _traced(operator: str, *operands: Any) -> Decimal:
    return cast("Decimal", Expression(operator, *operands))


def _is(operand: Any, value: int) -> bool:
    return not isinstance(operand, Expression) and operand == value
