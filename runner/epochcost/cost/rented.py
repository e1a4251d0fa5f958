"""Rented machines: the lines of a plan's hourly parts, and of what it charges otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

from epochcost.cost.lines import Line, Usage
from epochcost.cost.money import kept, kept_positive
from epochcost.cost.parts import HOURS_PER_MONTH, Part
from epochcost.cost.starts import Schedule
from epochcost.specs.price import Price
from epochcost.units import SECONDS_PER_HOUR


def hourly_lines(parts: Sequence[Part], schedule: Schedule, machines: int) -> Iterator[Line]:
    """List each part for the time of work, then all for each other use of time, in order.

    The later amounts are what the bill of all time so far exceeds the lines before by: rounding
    each by itself could let a bill fall by one unit of the last decimal as time grows.
    """
    if not parts:
        return
    so_far, amounts = schedule.used_seconds, _amounts(parts, schedule.used_seconds)
    for part, amount in zip(parts, amounts, strict=True):
        quantity = _hours(so_far if part.units == 1 else so_far * part.units)
        yield Line(part.label, quantity * machines, part.unit, part.rate, amount * machines)
    for label, until in _later_uses(schedule):
        rate = sum((part.hourly for part in parts), Decimal(0))
        hours, later = _hours(until) - _hours(so_far), _amounts(parts, until)
        amount = sum(later, Decimal(0)) - sum(amounts, Decimal(0))
        yield Line(label, hours * machines, "hour", rate, amount * machines)
        so_far, amounts = until, later


def _later_uses(schedule: Schedule) -> Iterator[tuple[str, Decimal]]:
    """What follows the work, each with the time billed until then; free time takes some back."""
    so_far = schedule.used_seconds
    for label, seconds in (
        ("compute, starting", schedule.starting_seconds),
        ("compute, checkpoints", schedule.saving_seconds),
        ("compute, rework expected", schedule.rework_seconds),
        ("compute, restarts expected", schedule.restarting_seconds),
    ):
        if seconds:
            so_far += seconds
            yield label, so_far
    if schedule.billed_seconds != so_far:
        unused = schedule.billed_seconds > so_far
        label = "compute, billed but unused" if unused else "interrupted periods, free"
        yield label, schedule.billed_seconds


def storage_lines(price: Price, schedule: Schedule, machines: int) -> Iterator[Line]:
    """What is kept by the gigabyte-month, for all the time on the wall."""
    for part in price.components:
        if part.per == "gb-month" and part.amount is not None:
            months = schedule.elapsed_seconds / (HOURS_PER_MONTH * SECONDS_PER_HOUR)
            quantity = kept(part.count * months)
            yield _line(part.label, quantity, "GB-month", part.amount, machines)


def egress_lines(price: Price, usage: Usage) -> Iterator[Line]:
    """What is moved by the gigabyte."""
    for part in price.components:
        if part.per == "gb" and part.amount is not None and usage.egress_gb > 0:
            yield _line(part.label, usage.egress_gb, "GB", part.amount)


def run_lines(price: Price, usage: Usage) -> Iterator[Line]:
    """What is charged for each run, whatever it lasts."""
    for part in price.components:
        if part.per == "run" and part.amount is not None:
            yield _line(
                part.label, kept_positive(part.count, "count"), "run", part.amount, usage.runs
            )


def failure_lines(price: Price, schedule: Schedule, machines: int) -> Iterator[Line]:
    """The expected charge of starts that fail."""
    if schedule.failures > 0 and price.start.failure_charge > 0:
        charge = price.start.failure_charge
        yield _line("failed starts, expected", schedule.failures, "start", charge, machines)


def _line(label: str, quantity: Decimal, unit: str, rate: Decimal, times: int = 1) -> Line:
    rate = kept_positive(rate)
    return Line(label, quantity * times, unit, rate, kept(quantity * rate) * times)


def _hours(seconds: Decimal) -> Decimal:
    return kept(seconds / SECONDS_PER_HOUR)


def _amounts(parts: Sequence[Part], seconds: Decimal) -> list[Decimal]:
    return [part.amount(seconds) for part in parts]
