"""Rented machines: used time becomes billed time, and billed time becomes lines."""

from __future__ import annotations

from decimal import Decimal

from epochcost.cost.lines import Line, Usage
from epochcost.cost.money import exact_arithmetic, kept
from epochcost.specs.billing import Billing
from epochcost.units import SECONDS_PER_HOUR


def billed_seconds(used_seconds: Decimal, rule: Billing) -> Decimal:
    """Round the seconds of one start up to those that are billed.

    Use up to the minimum is billed as the minimum, longer use in whole steps (a step of 0: as
    used). Billing billed seconds again changes nothing.
    """
    with exact_arithmetic():
        if used_seconds <= rule.minimum_seconds:
            return rule.minimum_seconds
        if rule.increment_seconds == 0:
            return used_seconds
        steps, rest = divmod(used_seconds, rule.increment_seconds)
        return (steps + (rest > 0)) * rule.increment_seconds


def rented_lines(rate_per_hour: Decimal, rule: Billing, usage: Usage) -> tuple[Line, ...]:
    """List the used time and, apart from it, the time billed although nobody used it.

    The second amount is what the whole bill exceeds the first by: rounding each by itself could
    let a bill fall by one unit of the last decimal as time grows.
    """
    used, billed = usage.duration_seconds, billed_seconds(usage.duration_seconds, rule)
    used_hours, billed_hours = kept(used / SECONDS_PER_HOUR), kept(billed / SECONDS_PER_HOUR)
    used_amount = kept(rate_per_hour * used / SECONDS_PER_HOUR)
    billed_amount = kept(rate_per_hour * billed / SECONDS_PER_HOUR)

    def line(label: str, hours: Decimal, amount: Decimal) -> Line:
        return Line(label, hours * usage.count, "hour", rate_per_hour, amount * usage.count)

    lines = (line("compute, used", used_hours, used_amount),)
    if billed == used:
        return lines
    unused_hours, unused_amount = billed_hours - used_hours, billed_amount - used_amount
    return (*lines, line("compute, billed but unused", unused_hours, unused_amount))
