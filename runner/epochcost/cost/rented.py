"""Rented machines: a plan's hourly charges, and the resulting lines of a bill.

The charges are the machine's price, a commitment's payments, components such as a GPU, and premiums
in percent of other charges. With a discount for sustained use, later hours of a month cost less:
this month has 730 hours and begins with the job. Call the functions within `exact_arithmetic`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from epochcost.cost.lines import Line
from epochcost.cost.money import quantized, quantized_positive
from epochcost.cost.schedule import Schedule
from epochcost.cost.tracing import ceil_divide, is_zero, maximum, minimum
from epochcost.specs.price import Price
from epochcost.specs.terms import COMMITTED, COMPUTE, Billing, Commitment, Component, rule_of
from epochcost.units import HOURS_PER_BILLED_MONTH, SECONDS_PER_HOUR, plain

# A whole number, or a symbol of one.
Count = Decimal | int
_ZERO, _ONE = Decimal(0), Decimal(1)
_MONTH_SECONDS = Decimal(HOURS_PER_BILLED_MONTH * SECONDS_PER_HOUR)


@dataclass(frozen=True, slots=True)
class HourlyCharge:
    """A charge for an hour of a machine: ``rate`` times ``units``, with 18 decimals.

    Premiums, in percent of other charges, refer to a charge by ``name``. The bill shows ``label``.
    ``machines`` is the number of machines that are charged, counted anew in each run.
    """

    name: str
    label: str
    rate: Decimal
    units: Decimal = Decimal(1)
    machines: Count = 1

    @property
    def hourly(self) -> Decimal:
        """The charge for an hour of one machine, with 18 decimals."""
        return quantized(self.rate * self.units)

    def line(self, seconds: Decimal) -> Line:
        """The line of the bill if each machine runs for ``seconds``.

        A longer time never costs less, even in the last decimal.
        """
        unit = "hour" if self.units == 1 else "unit-hour"
        hours = quantized(_hours(seconds * self.units) * self.machines)
        amount = quantized(self.rate * self.units * seconds / SECONDS_PER_HOUR)
        return Line(self.label, hours, unit, self.rate, quantized(amount * self.machines))


def compute_charge(rate_per_hour: Decimal, machines: Count = 1) -> HourlyCharge:
    """A charge for machines alone; raises InputError for a rate below 1e-18 or not finite."""
    rate = quantized_positive(rate_per_hour)
    return HourlyCharge(COMPUTE, f"{COMPUTE}, used", rate, machines=machines)


def hourly_charges(price: Price) -> tuple[HourlyCharge, ...]:
    """All hourly charges of a rented plan; raises InputError for a rate below 1e-18.

    Premiums come last: percentages of the charges that their component names, or of all others.
    """
    parts = [] if price.amount is None else [compute_charge(price.amount)]
    if (terms := price.commitment) is not None:
        parts.extend((*_commitment_charges(terms), *_idle_commitment_charges(terms)))
    parts.extend(
        HourlyCharge(part.label, part.label, quantized_positive(part.amount), quantized(part.count))
        for part in price.components
        if part.amount is not None and part.per == "hour"
    )
    return (*parts, *_premiums(price.components, parts))


def _commitment_charges(terms: Commitment) -> tuple[HourlyCharge, ...]:
    return tuple(
        HourlyCharge(COMMITTED, label, quantized_positive(rate))
        for label, rate in (
            ("upfront, by the hour", terms.by_the_hour - terms.hourly),
            ("commitment", terms.hourly),
        )
        if rate > 0
    )


def _idle_commitment_charges(terms: Commitment) -> tuple[HourlyCharge, ...]:
    # With a utilisation u, each used hour pays for 1/u - 1 idle hours.
    idle = quantized(1 / terms.utilisation - 1)
    return (_unused(terms, "commitment, idle hours", idle),) if idle > 0 else ()


def _unused(terms: Commitment, label: str, units: Decimal = _ONE) -> HourlyCharge:
    rate = sum((part.rate for part in _commitment_charges(terms)), _ZERO)
    return HourlyCharge(COMMITTED, label, rate, units)


@dataclass(frozen=True, slots=True)
class RentedUsage:
    """Number of machines at once, number of successive runs, and total gigabytes of egress."""

    count: Count
    runs: Count
    egress_gb: Decimal

    @property
    def machines(self) -> Count:
        """The number of machines of all runs together: machines at once times successive runs."""
        return self.count * self.runs


def job_charges(price: Price, usage: RentedUsage) -> Iterator[HourlyCharge]:
    """Yield all hourly charges of a job, each with the number of machines over all runs.

    Usually, all charges have the same number. A commitment with an on-demand price covers a number
    of machines, which are charged even if unused. Then the covered machines, further machines at
    the on-demand price, and the components of all used machines have different numbers.
    """
    charges, terms = hourly_charges(price), price.commitment
    groups = [(usage.count, charges)]
    if terms is not None and terms.on_demand_hourly is not None:
        others = tuple(charge for charge in charges if charge.name != COMMITTED)
        some = _commitment_groups(terms, usage.count, terms.on_demand_hourly)
        groups = [*some, (usage.count, others)]
    for number, group in groups:
        if not is_zero(number):
            yield from (replace(charge, machines=number * usage.runs) for charge in group)


def _commitment_groups(
    terms: Commitment, count: Count, on_demand: Decimal
) -> tuple[tuple[Decimal, tuple[HourlyCharge, ...]], ...]:
    """Pairs of a number of machines, which may be 0, and the charges for an hour of one of them.

    A machine can count in several pairs; its charges are then added up. For each hour of the job, a
    covered machine also pays for 1 / utilisation - 1 idle hours.
    """
    covers, used = quantized(terms.machines), count * Decimal(1)
    unused = _unused(terms, "commitment, unused machines")
    above = HourlyCharge(COMPUTE, "on demand, above the commitment", quantized_positive(on_demand))
    return (
        (minimum(used, covers), _commitment_charges(terms)),
        (covers, _idle_commitment_charges(terms)),
        (maximum(covers - used, _ZERO), (unused,)),
        (maximum(used - covers, _ZERO), (above,)),
    )


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


def full_price_time(used: Decimal, shares: Sequence[Decimal], month: Decimal) -> Decimal:
    """Convert a time with a discount to the time that costs as much at full price.

    ``used`` is the time of use in all months, in the unit of ``month``, the length of a month. A
    month has ``len(shares)`` equal parts; use in part i costs ``shares[i]`` × the full price.
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
    """The seconds of a run that are not charged, because of a discount for sustained use.

    Each of the job's ``runs`` successive runs of ``seconds`` gets an equal part of the discount.
    ``shares`` is as for `full_price_time`, and empty without a discount.
    """
    if not shares:
        return _ZERO
    used = seconds * runs
    return quantized((used - full_price_time(used, shares, _MONTH_SECONDS)) / runs)


def job_lines(
    price: Price, schedule: Schedule, usage: RentedUsage, lay_out: Callable[[Billing], Schedule]
) -> Iterator[Line]:
    """All lines of the bill of a job on rented machines.

    ``schedule`` follows the machines' billing rule. A charge per gigabyte-month, such as for a
    disk, may have its own billing rule; ``lay_out`` computes the job's schedule under this rule.
    """
    discount = discounted_seconds(schedule.billed_seconds, usage.runs, price.month_shares)
    charges = tuple(job_charges(price, usage))
    yield from hourly_lines(charges, schedule, usage.machines, discount)
    yield from _non_hourly_component_lines(price, schedule, usage, lay_out)
    charge = price.start.failure_charge
    if not is_zero(schedule.failures) and charge > 0:
        label = "failed starts, expected"
        yield _line(label, schedule.failures, "start", charge, usage.machines)


def hourly_lines(
    charges: Sequence[HourlyCharge],
    schedule: Schedule,
    machines: Count,
    discounted: Decimal = _ZERO,
) -> Iterator[Line]:
    """Lines of a bill: one for each charge for work, then lines for other time, such as starts.

    The last line subtracts the price of the seconds ``discounted`` for sustained use, if any.
    """
    if not charges:
        return
    so_far = schedule.used_seconds
    used = [charge.line(so_far) for charge in charges]
    yield from used
    cost = sum((line.amount for line in used), _ZERO)
    rate = sum((charge.hourly * charge.machines for charge in charges), _ZERO) / machines
    # Amounts are differences of totals. Lines that are rounded separately could lower the bill by
    # one unit of the last decimal as time grows.
    for label, until in _billed_totals_after_work(schedule, discounted):
        hours = (_hours(until) - _hours(so_far)) * machines
        before, cost = cost, sum((charge.line(until).amount for charge in charges), _ZERO)
        yield Line(label, hours, "hour", quantized(rate), cost - before)
        so_far = until


def _billed_totals_after_work(
    schedule: Schedule, discounted: Decimal
) -> Iterator[tuple[str, Decimal]]:
    """Yield a label for each kind of billed time besides work, and a running total of seconds.

    The total includes the work and all kinds so far. Kinds without time are left out.
    """
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


def _non_hourly_component_lines(
    price: Price, schedule: Schedule, usage: RentedUsage, lay_out: Callable[[Billing], Schedule]
) -> Iterator[Line]:
    for part in price.components:
        amount = part.amount or _ZERO
        if part.per == "gb-month":
            seconds = schedule.elapsed_seconds
            if part.billing is not None:
                seconds = lay_out(rule_of(part.billing)).billed_seconds
            quantity = quantized(part.count * (seconds / _MONTH_SECONDS))
            yield _line(part.label, quantity, "GB-month", amount, usage.machines)
        elif part.per == "gb" and not is_zero(usage.egress_gb):
            yield _line(part.label, usage.egress_gb, "GB", amount)
        elif part.per == "run" and not is_zero(schedule.starts):
            count = quantized_positive(part.count, "count")
            yield _line(part.label, count, "run", amount, usage.runs)


def _line(label: str, quantity: Decimal, unit: str, rate: Decimal, times: Count = 1) -> Line:
    rate = quantized_positive(rate)
    return Line(label, quantity * times, unit, rate, quantized(quantity * rate) * times)


def _hours(seconds: Decimal) -> Decimal:
    return quantized(seconds / SECONDS_PER_HOUR)
