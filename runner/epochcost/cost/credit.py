"""Free credit: what a provider gives new customers comes off a bill, and what is left of it."""

from __future__ import annotations

from decimal import ROUND_DOWN, Decimal

from epochcost.cost.lines import Line
from epochcost.cost.money import LARGEST, QUANTUM
from epochcost.errors import InputError


def paid_from(
    left: Decimal, label: str, lines: tuple[Line, ...]
) -> tuple[tuple[Line, ...], Decimal, Decimal]:
    """Pay a bill from what is left of a credit: all lines, what was used, and what is left then.

    To be called inside `exact_arithmetic`. Raises InputError where ``left`` is negative or not
    finite.
    """
    if not left.is_finite() or not 0 <= left <= LARGEST:
        raise InputError(f"credit: demanded an amount of at least 0, finite; got {left:.6g}")
    left = left.quantize(QUANTUM, rounding=ROUND_DOWN)
    used = min(left, sum((line.amount for line in lines), Decimal(0)))
    if used > 0:
        lines = (*lines, Line(label, Decimal(1), "credit", -used, -used))
    return lines, used, left - used
