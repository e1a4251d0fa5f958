"""Rent or buy: from how many hours of use in a month an owned machine is cheaper.

The hours of use are those of the owned machine. A rented machine needs these hours ÷ its relative
speed. The monthly costs are linear in the hours, in several pieces for a sustained-use discount.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from epochcost.cost.bill import share
from epochcost.cost.lines import Usage
from epochcost.cost.money import CONTEXT, exact_arithmetic, quantized
from epochcost.cost.owned import (
    HOURS_PER_CALENDAR_MONTH,
    MONTHS_PER_YEAR,
    energy_per_hour,
    owned_units,
    running_per_month,
)
from epochcost.cost.rented import full_price_time
from epochcost.errors import InputError
from epochcost.specs.catalogue import Catalogue, current_prices, usual_price
from epochcost.specs.price import Price
from epochcost.specs.terms import Owned
from epochcost.units import CONVERT, HOURS_PER_BILLED_MONTH, SECONDS_PER_HOUR, plain, rounded

# Rented plans that an error names.
_MOST_NAMED = 3
Outcome = Literal["always", "never", "above", "below", "between"]


@dataclass(frozen=True, slots=True)
class MonthlyCost:
    """The monthly cost of an owned or rented machine, by the owned machine's hours of use.

    ``fixed`` is paid even without use, ``per_hour`` for each hour of use of the owned machine. With
    a discount for sustained use, ``term_hours`` is the owned machine's time for a month's work of
    the rented machine. It has ``len(shares)`` equal parts, and an hour in part i costs
    ``shares[i]`` × ``per_hour``. Without a discount, ``shares`` is empty.
    """

    fixed: Decimal
    per_hour: Decimal
    shares: tuple[Decimal, ...] = ()
    term_hours: Decimal = Decimal(HOURS_PER_BILLED_MONTH)

    def at(self, hours: Decimal) -> Decimal:
        """The cost of a month with ``hours`` of use."""
        with exact_arithmetic():
            if self.shares and hours:
                hours = full_price_time(hours, self.shares, self.term_hours)
            return quantized(self.fixed + hours * self.per_hour)

    def bends(self) -> tuple[Decimal, ...]:
        """The hours of use in a month at which the price of a further hour changes."""
        if not self.shares:
            return ()
        with exact_arithmetic():
            part = self.term_hours / len(self.shares)
            parts = int(HOURS_PER_CALENDAR_MONTH / part)
            return tuple(part * number for number in range(1, parts + 1))


@dataclass(frozen=True, slots=True)
class BreakEven:
    """The hours of use at which buying is cheaper than renting, in a month of 730.5 hours.

    If ``outcome`` is "always" or "never", ``hours`` is None. Only "between" has ``until``.
    """

    outcome: Outcome
    hours: Decimal | None = None
    until: Decimal | None = None

    @property
    def phrase(self) -> str:
        """The hours at which buying is cheaper, as a phrase that ends a sentence."""
        if self.hours is None:
            return "at any number of hours" if self.outcome == "always" else "at no number of hours"
        end = "" if self.until is None else f" and {_render_hours(self.until)}"
        return f"{self.outcome} {_render_hours(self.hours)}{end} hours a month"


def _render_hours(hours: Decimal) -> str:
    return f"{hours:,.1f}" if hours < 10 else f"{hours:,.0f}"


@dataclass(frozen=True, slots=True)
class Payback:
    """How long it takes until buying is cheaper than renting, given the hours of use a month.

    After ``years``, the saved rent has paid for the purchase; None if not within the machine's
    life. Then ``by_resale`` says whether buying is cheaper because the machine is sold at the end.
    """

    years: Decimal | None
    by_resale: bool

    @property
    def phrase(self) -> str:
        """The time after which buying is cheaper, as a phrase."""
        if self.years is None:
            return "only with the resale value" if self.by_resale else "not in the machine's life"
        return f"after {self.years:.1f} years"


@dataclass(frozen=True, slots=True)
class Rent:
    """A rented plan, its machine's speed relative to the owned machine, and the speed's source."""

    price: Price
    speed: Decimal = Decimal(1)
    why: str = "the same kind of machine"


@dataclass(frozen=True, slots=True)
class Alternative:
    """A rented plan, its monthly cost, and its break-even and payback against the owned plan."""

    rent: Rent
    month: MonthlyCost
    crossing: BreakEven
    payback: Payback


@dataclass(frozen=True, slots=True)
class Comparison:
    """The monthly costs of an owned machine and of the rented plans that could replace it.

    ``alternatives`` are ordered by their cost at ``hours`` hours of use a month, cheapest first.
    """

    owned: Price
    month: MonthlyCost
    hours: Decimal
    alternatives: tuple[Alternative, ...]


def compare(
    owned: Price, rents: Iterable[Rent], hours: Decimal | None = None, vcpus: int | None = None
) -> Comparison:
    """Compare an owned machine with rented plans at a number of hours of use a month.

    The default of ``hours`` is the owned plan's utilisation × 730.5, rounded. Raises InputError if
    ``hours`` is not between 0 and 730.5, if ``owned`` is a rented plan, or if it is per vCPU and
    ``vcpus`` is None. Also raises InputError unless each of ``rents`` has a rented plan in the same
    currency, an hourly charge, and a positive speed.
    """
    if hours is None:
        hours = Decimal(round(HOURS_PER_CALENDAR_MONTH * _owned(owned).utilisation))
    if not hours.is_finite() or not 0 <= hours <= HOURS_PER_CALENDAR_MONTH:
        raise InputError(
            "hours per month: expected at least 0 and at most "
            f"{plain(HOURS_PER_CALENDAR_MONTH)}, those of a month, got {hours:.6g}"
        )
    month = monthly_owned(owned, vcpus)
    alternatives: list[Alternative] = []
    for rent in rents:
        _demand_one_currency(owned, rent.price)
        rented = monthly_rented(rent)
        paid = payback(owned, rented.at(hours), hours, vcpus)
        alternatives.append(Alternative(rent, rented, crossing(month, rented), paid))
    ordered = sorted(alternatives, key=lambda alternative: alternative.month.at(hours))
    return Comparison(owned, month, hours, tuple(ordered))


def monthly_owned(price: Price, vcpus: int | None = None) -> MonthlyCost:
    """Monthly cost of an owned machine; the hours of use replace the plan's utilisation.

    Raises InputError for a rented plan, and for a plan per vCPU if ``vcpus`` is None.
    """
    with exact_arithmetic():
        plan = _owned(price)
        units = owned_units(plan, price.id, vcpus)
        loss = (plan.purchase - plan.residual) / (plan.years * MONTHS_PER_YEAR)
        return MonthlyCost((loss + running_per_month(plan)) * units, energy_per_hour(plan) * units)


def monthly_rented(rent: Rent) -> MonthlyCost:
    """The monthly cost of a rented machine that does the owned machine's work.

    The cost includes the payments of a commitment, in full for a faster machine. It leaves out
    starts, interruptions, charges per run, the rounding of billed time and free credit. Raises
    InputError if the plan is for an owned machine or has no hourly charge, or if the speed is not
    positive.
    """
    price, speed = rent.price, rent.speed
    if price.owned is not None:
        raise InputError(f"{price.id}: expected a rented plan to compare with, got an owned one")
    if not speed.is_finite() or speed <= 0:
        raise InputError(f"speed: expected a finite number above 0, got {speed:.6g}")
    with exact_arithmetic():
        terms = price.commitment
        if terms is not None and terms.on_demand_hourly is not None:
            terms = terms.model_copy(update={"on_demand_hourly": None})
            price = price.model_copy(update={"commitment": terms})
        hour = share(price, Usage(Decimal(SECONDS_PER_HOUR))).total
        if terms is None:
            shares, month = price.month_shares, HOURS_PER_BILLED_MONTH * speed
            return MonthlyCost(Decimal(0), hour / speed, shares, month)
        paid = terms.by_the_hour
        power = hour - paid / terms.utilisation
        # A faster machine is paid whole; of slower machines, as many as do the owned one's work.
        machines = max(1 / speed, Decimal(1))
        fixed = paid * HOURS_PER_BILLED_MONTH * machines
        return MonthlyCost(fixed, max(power, Decimal(0)) / speed)


def crossing(owned: MonthlyCost, rent: MonthlyCost) -> BreakEven:
    """The hours at which buying is cheaper; buying wins if the costs are equal at all hours."""
    with exact_arithmetic():
        hours = (Decimal(0), *rent.bends(), HOURS_PER_CALENDAR_MONTH)
        saved = [rent.at(point) - owned.at(point) for point in hours]
        if all(amount >= 0 for amount in saved):
            return BreakEven("always")
        if all(amount <= 0 for amount in saved):
            return BreakEven("never")
        points = [*zip(hours, saved, strict=True)]
        first, *further = (
            quantized(begin + (end - begin) * before / (before - after))
            for (begin, before), (end, after) in itertools.pairwise(points)
            if (before < 0) != (after < 0)
        )
        if saved[0] >= 0:
            return BreakEven("below", first)
        return BreakEven("between", first, further[0]) if further else BreakEven("above", first)


def payback(owned: Price, rent: Decimal, hours: Decimal, vcpus: int | None = None) -> Payback:
    """The years after which buying is cheaper than a monthly ``rent`` for ``hours`` of use a month.

    The purchase is paid on the first day, and the residual value is received at the end.
    """
    with exact_arithmetic():
        plan = _owned(owned)
        units = owned_units(plan, owned.id, vcpus)
        running = (running_per_month(plan) + hours * energy_per_hour(plan)) * units
        months = plan.years * MONTHS_PER_YEAR
        purchase, residual = plan.purchase * units, plan.residual * units
        cheaper = quantized(purchase - residual + months * running) <= quantized(months * rent)
        saved = rent - running
        years = purchase / saved / MONTHS_PER_YEAR if saved > 0 else None
    if years is not None and years <= plan.years:
        return Payback(CONTEXT.create_decimal(years), by_resale=False)
    return Payback(None, by_resale=cheaper)


def _owned(price: Price) -> Owned:
    if price.owned is None:
        raise InputError(f"{price.id}: expected an owned plan, got plan {price.plan!r}")
    return price.owned


def _demand_one_currency(owned: Price, rented: Price) -> None:
    if owned.currency != rented.currency:
        raise InputError(
            f"{rented.id}: expected a plan in {owned.currency}, the currency of {owned.id}, got "
            f"{rented.currency}: {CONVERT}"
        )


def rent_at(
    catalogue: Catalogue, owned: Price, identifier: str, speed: Decimal | None = None
) -> Rent:
    """The rented plan with the id ``identifier``, and its speed relative to the owned machine.

    A ``speed`` of None means 1, and demands the same machine or equal accelerators. Raises
    InputError for an unknown id, and for another machine without a ``speed``.
    """
    price = catalogue.price(identifier)
    if speed is not None:
        return Rent(price, speed, f"declared as {speed.normalize():f} times as fast")
    if not _machines_are_alike(catalogue, owned, price):
        raise InputError(
            f"{identifier}: expected a machine with the accelerators of {owned.id}, or its "
            "--speed, found neither"
        )
    return Rent(price)


def rents_named(
    catalogue: Catalogue, owned: Price, identifiers: Sequence[str], speed: Decimal | None
) -> list[Rent]:
    """The rented plans with the given ids; without ids, all plans that could replace ``owned``.

    ``speed`` is as for `rent_at`. Raises InputError like `rent_at`, and if no plan could replace
    ``owned``. The last error suggests machines with more or fewer of the same accelerators.
    """
    rents = [rent_at(catalogue, owned, identifier, speed) for identifier in identifiers]
    rents = rents or list(rents_alike(catalogue, owned))
    if not rents:
        bought = _accelerator_counts(catalogue, owned.hardware)
        speeds = {
            price.id: Decimal(chips.total()) / bought.total()
            for price in (usual_price(catalogue, machine) for machine in catalogue.hardware)
            if price is not None and price.owned is None and price.currency == owned.currency
            if (chips := _accelerator_counts(catalogue, price.hardware))
            and chips.keys() == bought.keys()
        }
        nearest = sorted(speeds, key=lambda identifier: abs(speeds[identifier].ln()))[:_MOST_NAMED]
        options = " or ".join(f"--rent {each} --speed {rounded(speeds[each])}" for each in nearest)
        raise InputError(
            f"{owned.id}: expected a rented plan in {owned.currency} of a machine with the same "
            "accelerators, found none: name one with --rent, and its --speed"
            f"{', such as ' * bool(options)}{options}"
        )
    return rents


def rents_alike(catalogue: Catalogue, owned: Price) -> Iterator[Rent]:
    """Yield current hourly rents in the same currency, of the same machine or accelerators."""
    for price in current_prices(catalogue.prices.values()):
        rented = price.is_hourly and price.currency == owned.currency and not price.flaw
        if rented and _machines_are_alike(catalogue, owned, price):
            yield Rent(price)


def _machines_are_alike(catalogue: Catalogue, owned: Price, candidate: Price) -> bool:
    bought, rented = (_accelerator_counts(catalogue, each.hardware) for each in (owned, candidate))
    return owned.hardware == candidate.hardware or (bool(bought) and bought == rented)


def _accelerator_counts(catalogue: Catalogue, hardware: str) -> Counter[str]:
    accelerators = catalogue.machine(hardware).accelerators
    return Counter(gpu.name for gpu in accelerators for _ in range(gpu.count))
