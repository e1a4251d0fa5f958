"""Rented machines: a plan's hourly charges, and the resulting lines of a bill.

The charges are the machine's price, a commitment's payments, components such as a GPU, and premiums
in percent of other charges. With a discount for sustained use, later hours of a month cost less:
this month has 730 hours and begins with the job. Call the functions within `exact_arithmetic`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
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
    """

    name: str
    label: str
    rate: Decimal
    units: Decimal = Decimal(1)

    @property
    def unit(self) -> str:
        """Unit of the rate: "hour" for a charge with 1 unit, else "unit-hour"."""
        return "hour" if self.units == 1 else "unit-hour"

    @property
    def hourly(self) -> Decimal:
        """The charge for an hour, with 18 decimals."""
        return self.rate if self.units == 1 else quantized(self.rate * self.units)

    def amount(self, seconds: Decimal) -> Decimal:
        """The charge for ``seconds``; a longer time never costs less, even in the last decimal."""
        return quantized(self.rate * self.units * seconds / SECONDS_PER_HOUR)


def compute_charge(rate_per_hour: Decimal) -> HourlyCharge:
    """A charge for the machine alone; raises InputError for a rate below 1e-18 or not finite."""
    return HourlyCharge(COMPUTE, f"{COMPUTE}, used", quantized_positive(rate_per_hour))


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


@dataclass(frozen=True, slots=True)
class ChargedMachines:
    """A number of machines, counted anew in each run, and the charges for an hour of one."""

    machines: Count
    charges: Sequence[HourlyCharge]

    @property
    def hourly(self) -> Decimal:
        """The sum of the charges for an hour of one machine."""
        return sum((charge.hourly for charge in self.charges), _ZERO)

    def cost(self, seconds: Decimal) -> Decimal:
        """The sum of the charges if each of these machines runs for ``seconds``."""
        return sum((line.amount for line in self.lines(seconds)), _ZERO)

    def lines(self, seconds: Decimal) -> Iterator[Line]:
        """A line of the bill for each charge, if each of these machines runs for ``seconds``."""
        for charge in self.charges:
            hours = _hours(seconds if charge.units == 1 else seconds * charge.units)
            amount = quantized(charge.amount(seconds) * self.machines)
            quantity = quantized(hours * self.machines)
            yield Line(charge.label, quantity, charge.unit, charge.rate, amount)


def charged_machines(price: Price, usage: RentedUsage) -> Iterator[ChargedMachines]:
    """Yield groups of hourly charges, each with the number of machines for which they are billed.

    The number is the sum over all runs. Usually, a single group has all charges. A commitment with
    an on-demand price covers a number of machines, which are charged even if unused. Then the
    covered machines, further machines at the on-demand price, and the components of all used
    machines are in different groups.
    """
    charges, terms = hourly_charges(price), price.commitment
    groups = [(usage.count, charges)]
    if terms is not None and terms.on_demand_hourly is not None:
        others = tuple(charge for charge in charges if charge.name != COMMITTED)
        some = _commitment_groups(terms, usage.count, terms.on_demand_hourly)
        groups = [*some, (usage.count, others)]
    for number, group in groups:
        if group and not is_zero(number):
            yield ChargedMachines(number * usage.runs, group)


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
    charged = tuple(charged_machines(price, usage))
    yield from hourly_lines(charged, schedule, usage.machines, discount)
    yield from _non_hourly_component_lines(price, schedule, usage, lay_out)
    charge = price.start.failure_charge
    if not is_zero(schedule.failures) and charge > 0:
        label = "failed starts, expected"
        yield _line(label, schedule.failures, "start", charge, usage.machines)


def hourly_lines(
    charged: Sequence[ChargedMachines],
    schedule: Schedule,
    machines: Count,
    discounted: Decimal = _ZERO,
) -> Iterator[Line]:
    """Lines of a bill: one for each charge for work, then lines for other time, such as starts.

    The last line subtracts the price of the seconds ``discounted`` for sustained use, if any.
    """
    if not charged:
        return
    so_far = schedule.used_seconds
    used = [line for group in charged for line in group.lines(so_far)]
    yield from used
    cost = sum((line.amount for line in used), _ZERO)
    # Amounts are differences of totals. Lines that are rounded separately could lower the bill by
    # one unit of the last decimal as time grows.
    for label, until in _billed_totals_after_work(schedule, discounted):
        hours = (_hours(until) - _hours(so_far)) * machines
        before, cost = cost, sum((group.cost(until) for group in charged), _ZERO)
        rates = [group.hourly * group.machines for group in charged]
        rate = charged[0].hourly if len(charged) == 1 else sum(rates, _ZERO) / machines
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
