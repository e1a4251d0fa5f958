"""Rented machines: a plan's charges by the hour, and the lines of a bill that follow from them.

An hour's charges are the plan's amount, its commitment, its components and their premiums. How
long is billed is decided by `cost.schedule`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from epochcost.cost.lines import Line
from epochcost.cost.money import quantized, quantized_positive
from epochcost.cost.schedule import Schedule
from epochcost.cost.sustained import discounted_seconds
from epochcost.cost.tracing import is_zero
from epochcost.errors import InputError
from epochcost.specs.base import Identity
from epochcost.specs.price import Price
from epochcost.specs.terms import COMMITTED, COMPUTE, Commitment, Component
from epochcost.units import HOURS_PER_BILLED_MONTH, SECONDS_PER_HOUR, plain

# Whole numbers, but as symbols.
Count = Decimal | int
_ZERO = Decimal(0)


@dataclass(frozen=True, slots=True)
class HourlyCharge:
    """The cost of an hour of a machine: ``rate`` for each of ``units``, kept to 18 decimals.

    ``name`` is what premiums call it, ``label`` what the bill does.
    """

    name: str
    label: str
    rate: Decimal
    units: Decimal = Decimal(1)

    @property
    def unit(self) -> str:
        """The unit of the rate."""
        return "hour" if self.units == 1 else "unit-hour"

    @property
    def hourly(self) -> Decimal:
        """The cost of the part in an hour, kept to 18 decimals."""
        return self.rate if self.units == 1 else quantized(self.rate * self.units)

    def amount(self, seconds: Decimal) -> Decimal:
        """The cost of so many seconds; never less for longer, to the last decimal."""
        return quantized(self.rate * self.units * seconds / SECONDS_PER_HOUR)


def compute_charge(rate_per_hour: Decimal) -> HourlyCharge:
    """The part that a bare hourly rate is; raises InputError below 1e-18 and where not finite."""
    return HourlyCharge(COMPUTE, f"{COMPUTE}, used", quantized_positive(rate_per_hour))


def hourly_charges(price: Price) -> tuple[HourlyCharge, ...]:
    """All that a rented plan charges by the hour, premiums last; to be called in exact_arithmetic.

    Raises InputError where a rate is below 1e-18.
    """
    return _hourly_parts(Identity(price))


# Prices are frozen, and each bills many jobs.
@lru_cache(maxsize=256)
def _hourly_parts(identity: Identity[Price]) -> tuple[HourlyCharge, ...]:
    price = identity.value
    parts = [] if price.amount is None else [compute_charge(price.amount)]
    if price.commitment is not None:
        parts.extend(_commitment_parts(price.commitment))
    parts.extend(
        HourlyCharge(part.label, part.label, quantized_positive(part.amount), quantized(part.count))
        for part in price.components
        if part.amount is not None and part.per == "hour"
    )
    return (*parts, *_premiums(price.components, parts))


def _commitment_parts(terms: Commitment) -> Iterator[HourlyCharge]:
    """An hour's payments, and those of the hours of the term that nobody uses.

    At utilisation u each used hour carries 1/u - 1 idle ones, so that it costs
    (upfront / (months x 730 h) + hourly) / u.
    """
    by_the_hour = terms.upfront / (terms.term_months * HOURS_PER_BILLED_MONTH)
    paid = [
        HourlyCharge(COMMITTED, label, quantized_positive(rate))
        for label, rate in (("upfront, by the hour", by_the_hour), ("commitment", terms.hourly))
        if rate > 0
    ]
    yield from paid
    idle = quantized(1 / terms.utilisation - 1)
    if idle > 0:
        rate = sum((part.rate for part in paid), Decimal(0))
        yield HourlyCharge(COMMITTED, "commitment, idle hours", rate, idle)


def _premiums(
    components: Iterable[Component], parts: Iterable[HourlyCharge]
) -> Iterator[HourlyCharge]:
    for component in components:
        if component.percent is None:
            continue
        names = component.of or {part.name for part in parts}
        hourly = sum((part.hourly for part in parts if part.name in names), Decimal(0))
        label = f"{component.label}, {plain(component.percent)} %"
        yield HourlyCharge(component.label, label, quantized(hourly * component.percent / 100))


def job_lines(
    price: Price, schedule: Schedule, machines: Count, runs: Count, egress_gb: Decimal
) -> Iterator[Line]:
    """All lines of a job that runs by a schedule, on ``machines`` in all of its ``runs``."""
    discount = discounted_seconds(schedule.billed_seconds, runs, price.month_shares)
    yield from hourly_lines(hourly_charges(price), schedule, machines, discount)
    yield from _storage_lines(price, schedule, machines)
    yield from _egress_lines(price, egress_gb)
    yield from _run_lines(price, runs)
    yield from _failure_lines(price, schedule, machines)


def share_lines(
    price: Price, schedule: Schedule, machines: Count, runs: Count, egress_gb: Decimal
) -> Iterator[Line]:
    """The lines of a share of a longer job; raises InputError where nothing is by the hour."""
    parts = hourly_charges(price)
    if not parts:
        raise InputError(f"{price.id}: expected a price per hour for a share, found none")
    discount = discounted_seconds(schedule.billed_seconds, runs, price.month_shares)
    yield from hourly_lines(parts, schedule, machines, discount)
    yield from _storage_lines(price, schedule, machines)
    yield from _egress_lines(price, egress_gb)


def hourly_lines(
    parts: Sequence[HourlyCharge],
    schedule: Schedule,
    machines: Count,
    discounted: Decimal = _ZERO,
) -> Iterator[Line]:
    """List each part for the time of work, then all for each other use of time, in order.

    The last line takes ``discounted`` seconds off.

    The later amounts are what the bill of all time so far exceeds the lines before by: rounding
    each by itself could let a bill fall by one unit of the last decimal as time grows.
    """
    if not parts:
        return
    so_far, amounts = schedule.used_seconds, _amounts(parts, schedule.used_seconds)
    for part, amount in zip(parts, amounts, strict=True):
        quantity = _hours(so_far if part.units == 1 else so_far * part.units)
        yield Line(part.label, quantity * machines, part.unit, part.rate, amount * machines)
    for label, until in _later_uses(schedule, discounted):
        rate = sum((part.hourly for part in parts), Decimal(0))
        hours, later = _hours(until) - _hours(so_far), _amounts(parts, until)
        amount = sum(later, Decimal(0)) - sum(amounts, Decimal(0))
        yield Line(label, hours * machines, "hour", rate, amount * machines)
        so_far, amounts = until, later


def _later_uses(schedule: Schedule, discounted: Decimal) -> Iterator[tuple[str, Decimal]]:
    """The uses of time that follow the work, each with the time billed until its end."""
    so_far = schedule.used_seconds
    for label, seconds in (
        ("compute, starting", schedule.starting_seconds),
        ("compute, checkpoints", schedule.saving_seconds),
        ("compute, rework expected", schedule.rework_seconds),
        ("compute, restarts expected", schedule.restarting_seconds),
        ("free, as taken back early", -schedule.free_seconds),
    ):
        if not is_zero(seconds):
            so_far += seconds
            yield label, so_far
    if not is_zero(schedule.billed_seconds - so_far):
        yield "compute, billed but unused", schedule.billed_seconds
    if not is_zero(discounted):
        yield "sustained-use discount", schedule.billed_seconds - discounted


def _storage_lines(price: Price, schedule: Schedule, machines: Count) -> Iterator[Line]:
    """Storage by the gigabyte-month, for all the time on the wall."""
    for part in price.components:
        if part.per == "gb-month" and part.amount is not None:
            months = schedule.elapsed_seconds / (HOURS_PER_BILLED_MONTH * SECONDS_PER_HOUR)
            quantity = quantized(part.count * months)
            yield _line(part.label, quantity, "GB-month", part.amount, machines)


def _egress_lines(price: Price, egress_gb: Decimal) -> Iterator[Line]:
    """Data moved, by the gigabyte."""
    for part in price.components:
        if part.per == "gb" and part.amount is not None and not is_zero(egress_gb):
            yield _line(part.label, egress_gb, "GB", part.amount)


def _run_lines(price: Price, runs: Count) -> Iterator[Line]:
    """Charges for each run, whatever it lasts."""
    for part in price.components:
        if part.per == "run" and part.amount is not None:
            count = quantized_positive(part.count, "count")
            yield _line(part.label, count, "run", part.amount, runs)


def _failure_lines(price: Price, schedule: Schedule, machines: Count) -> Iterator[Line]:
    """The expected charge of starts that fail."""
    if not is_zero(schedule.failures) and price.start.failure_charge > 0:
        charge = price.start.failure_charge
        yield _line("failed starts, expected", schedule.failures, "start", charge, machines)


def _line(label: str, quantity: Decimal, unit: str, rate: Decimal, times: Count = 1) -> Line:
    rate = quantized_positive(rate)
    return Line(label, quantity * times, unit, rate, quantized(quantity * rate) * times)


def _hours(seconds: Decimal) -> Decimal:
    return quantized(seconds / SECONDS_PER_HOUR)


def _amounts(parts: Sequence[HourlyCharge], seconds: Decimal) -> list[Decimal]:
    return [part.amount(seconds) for part in parts]
