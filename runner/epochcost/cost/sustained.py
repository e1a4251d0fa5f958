"""Discounts for sustained use: the longer a machine runs in a month, the cheaper an hour is.

A month has 730 hours and begins with the job. Call the functions within `exact_arithmetic`; they
take numbers, or symbols that record the formula.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

from epochcost.cost.money import quantized
from epochcost.cost.tracing import ceil_divide, maximum, minimum
from epochcost.units import HOURS_PER_BILLED_MONTH, SECONDS_PER_HOUR

_MONTH_SECONDS = Decimal(HOURS_PER_BILLED_MONTH * SECONDS_PER_HOUR)
_ZERO = Decimal(0)


def full_price_time(used: Decimal, shares: Sequence[Decimal], month: Decimal) -> Decimal:
    """Time at the full price that costs as much as ``used`` time with the discount.

    Times are in the unit of ``month``, and ``used`` begins with a month. A month is divided into
    equal parts, and each of ``shares`` is the share of the price that is charged in one part. Every
    month begins with the first share.
    """
    part = month / len(shares)
    months = ceil_divide(used, month) - 1
    rest = used - months * month
    parts = (
        share * minimum(maximum(rest - index * part, _ZERO), part)
        for index, share in enumerate(shares)
    )
    return months * part * sum(shares, _ZERO) + sum(parts, _ZERO)


def discounted_seconds(seconds: Decimal, runs: Decimal | int, shares: Sequence[Decimal]) -> Decimal:
    """The discount in each of ``runs`` successive runs, as seconds at the full price."""
    if not shares:
        return _ZERO
    used = seconds * runs
    return quantized((used - full_price_time(used, shares, _MONTH_SECONDS)) / runs)


def price_changes(shares: Sequence[Decimal], month: Decimal, until: Decimal) -> Iterator[Decimal]:
    """Times up to ``until`` at which the hourly price changes, in the unit of ``month``."""
    part = month / max(len(shares), 1)
    if shares:
        yield from (part * index for index in range(1, int(until / part) + 1))
