"""Free credit: what a provider gives new customers comes off a bill, and what is left of it."""

from __future__ import annotations

from dataclasses import replace
from decimal import ROUND_DOWN, Decimal

from epochcost.cost.lines import Line, Quote
from epochcost.cost.money import LARGEST, QUANTUM
from epochcost.errors import InputError


def credited(bill: Quote, label: str, left: Decimal) -> Quote:
    """Pay a bill from what is left of a credit, as far as it goes: one negative line.

    To be called inside `exact_arithmetic`. Raises InputError where ``left`` is negative or not
    finite.
    """
    if not left.is_finite() or not 0 <= left <= LARGEST:
        raise InputError(f"credit: demanded an amount of at least 0, finite; got {left:.6g}")
    left = left.quantize(QUANTUM, rounding=ROUND_DOWN)
    paid = min(left, bill.total)
    lines = bill.lines
    if paid > 0:
        lines = (*lines, Line(label, Decimal(1), "credit", -paid, -paid))
    return replace(bill, lines=lines, credit_used=paid, credit_left=left - paid)
