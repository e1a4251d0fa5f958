"""Rented machines: the lines of a plan's hourly parts, and of what it charges otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from epochcost.cost.lines import Line
from epochcost.cost.money import kept, kept_positive
from epochcost.cost.parts import HOURS_PER_BILLED_MONTH, Part, amount_at, hourly_parts
from epochcost.cost.starts import Schedule, share_of_a_start
from epochcost.cost.tracing import is_zero, largest
from epochcost.errors import InputError
from epochcost.specs.base import Identity
from epochcost.specs.price import Price
from epochcost.units import SECONDS_PER_HOUR

# Whole numbers, but as symbols.
Count = Decimal | int


def job_lines(
    price: Price, schedule: Schedule, machines: Count, runs: Count, egress_gb: Decimal
) -> Iterator[Line]:
    """All lines of a job that runs by a schedule, on ``machines`` in all of its ``runs``."""
    yield from hourly_lines(hourly_parts(price), schedule, machines)
    yield from _storage_lines(price, schedule, machines)
    yield from _egress_lines(price, egress_gb)
    yield from _run_lines(price, runs)
    yield from _failure_lines(price, schedule, machines)


def share_lines(
    price: Price, schedule: Schedule, machines: Count, egress_gb: Decimal
) -> Iterator[Line]:
    """The lines of a share of a longer job; raises InputError where nothing is by the hour."""
    yield from hourly_lines(_required_parts(price), schedule, machines)
    yield from _storage_lines(price, schedule, machines)
    yield from _egress_lines(price, egress_gb)


def job_total(price: Price, schedule: Schedule, machines: Count, runs: Count) -> Decimal:
    """What ``job_lines`` sum to where nothing leaves, in a fraction of their time."""
    charges = _charges(Identity(price))
    total = charges.of_hours(schedule.billed_seconds) * machines
    if not charges.others:
        return total
    stored = _storage_lines(price, schedule, machines)
    failed = _failure_lines(price, schedule, machines)
    return total + _sum((*stored, *_run_lines(price, runs), *failed))


def share_total(price: Price, seconds: Decimal, machines: Count) -> Decimal:
    """What ``share_lines`` sum to where nothing leaves; raises InputError as they do."""
    charges = _charges(Identity(price))
    if not charges.hourly:
        _required_parts(price)
    total = charges.of_hours(seconds) * machines
    if not charges.others:
        return total
    return total + _sum(_storage_lines(price, share_of_a_start(seconds), machines))


def hourly_lines(parts: Sequence[Part], schedule: Schedule, machines: Count) -> Iterator[Line]:
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


def _required_parts(price: Price) -> tuple[Part, ...]:
    parts = hourly_parts(price)
    if not parts:
        raise InputError(f"{price.id}: demanded a price per hour for a share; got none")
    return parts


@dataclass(frozen=True, slots=True)
class _Charges:
    """What a plan charges: by the hour, one rate for each part, and whether for anything else."""

    hourly: tuple[Decimal, ...]
    others: bool

    def of_hours(self, seconds: Decimal) -> Decimal:
        """What ``hourly_lines`` sum to: all but the first are differences, so all time tells."""
        return sum((amount_at(rate, seconds) for rate in self.hourly), Decimal(0))


# Prices are frozen, and each bills many jobs.
@lru_cache(maxsize=256)
def _charges(identity: Identity[Price]) -> _Charges:
    price = identity.value
    hourly = tuple(part.rate * part.units for part in hourly_parts(price))
    otherwise = any(part.per != "hour" and part.amount is not None for part in price.components)
    return _Charges(hourly, otherwise or price.start.failure_charge > 0)


def _sum(lines: Iterable[Line]) -> Decimal:
    return sum((line.amount for line in lines), Decimal(0))


def _later_uses(schedule: Schedule) -> Iterator[tuple[str, Decimal]]:
    """What follows the work, each with the time billed until then; free time takes some back."""
    so_far = schedule.used_seconds
    for label, seconds in (
        ("compute, starting", schedule.starting_seconds),
        ("compute, checkpoints", schedule.saving_seconds),
        ("compute, rework expected", schedule.rework_seconds),
        ("compute, restarts expected", schedule.restarting_seconds),
    ):
        if not is_zero(seconds):
            so_far += seconds
            yield label, so_far
    if is_zero(schedule.billed_seconds - so_far):
        return
    most = largest(schedule.billed_seconds, so_far)
    if not is_zero(most - so_far):
        yield "compute, billed but unused", most
    if not is_zero(schedule.billed_seconds - most):
        yield "interrupted periods, free", schedule.billed_seconds


def _storage_lines(price: Price, schedule: Schedule, machines: Count) -> Iterator[Line]:
    """What is kept by the gigabyte-month, for all the time on the wall."""
    for part in price.components:
        if part.per == "gb-month" and part.amount is not None:
            months = schedule.elapsed_seconds / (HOURS_PER_BILLED_MONTH * SECONDS_PER_HOUR)
            quantity = kept(part.count * months)
            yield _line(part.label, quantity, "GB-month", part.amount, machines)


def _egress_lines(price: Price, egress_gb: Decimal) -> Iterator[Line]:
    """What is moved by the gigabyte."""
    for part in price.components:
        if part.per == "gb" and part.amount is not None and not is_zero(egress_gb):
            yield _line(part.label, egress_gb, "GB", part.amount)


def _run_lines(price: Price, runs: Count) -> Iterator[Line]:
    """What is charged for each run, whatever it lasts."""
    for part in price.components:
        if part.per == "run" and part.amount is not None:
            yield _line(part.label, kept_positive(part.count, "count"), "run", part.amount, runs)


def _failure_lines(price: Price, schedule: Schedule, machines: Count) -> Iterator[Line]:
    """The expected charge of starts that fail."""
    if not is_zero(schedule.failures) and price.start.failure_charge > 0:
        charge = price.start.failure_charge
        yield _line("failed starts, expected", schedule.failures, "start", charge, machines)


def _line(label: str, quantity: Decimal, unit: str, rate: Decimal, times: Count = 1) -> Line:
    rate = kept_positive(rate)
    return Line(label, quantity * times, unit, rate, kept(quantity * rate) * times)


def _hours(seconds: Decimal) -> Decimal:
    return kept(seconds / SECONDS_PER_HOUR)


def _amounts(parts: Sequence[Part], seconds: Decimal) -> list[Decimal]:
    return [part.amount(seconds) for part in parts]
