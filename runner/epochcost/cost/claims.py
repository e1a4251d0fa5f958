"""Published figures recomputed from their rows' inputs, compared at the printed precision.

What each formula computes, in base units, and how the result agrees with the source's digits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from itertools import product
from math import prod
from types import MappingProxyType
from typing import Literal

from epochcost.cost.bill import quote, share
from epochcost.cost.energy import ASSUMPTIONS, emissions_pounds, energy_kwh
from epochcost.cost.lines import Usage
from epochcost.cost.money import exact_arithmetic
from epochcost.errors import InputError
from epochcost.specs.formula import (
    Against,
    Bill,
    Duration,
    Energy,
    NotGiven,
    Product,
    RateDrop,
    Unit,
)
from epochcost.specs.price import Price
from epochcost.specs.published import Claim, Published, Timing, half_unit
from epochcost.specs.terms import BILLING_RULES, BillingName
from epochcost.units import SECONDS_PER_HOUR

# Base units (dollars, seconds, counts) in one of each unit.
_BASE_UNITS: Mapping[Unit, Decimal] = MappingProxyType(
    {
        "US cents": Decimal("0.01"),
        "thousand USD": Decimal(10**3),
        "million USD": Decimal(10**6),
        "hours": Decimal(SECONDS_PER_HOUR),
        "percent": Decimal("0.01"),
        "million examples": Decimal(10**6),
    }
)
Agreement = Literal["equal", "within rounding", "differs", "not recomputed"]


@dataclass(frozen=True, slots=True)
class RowInputs:
    """A row with the time of all its work, which may be other than the one it gives.

    ``timing`` and ``seconds`` are None for claims of no row.
    """

    timing: Timing | None
    seconds: Decimal | None
    prices: Mapping[str, Price]

    @property
    def row(self) -> Timing:
        """The row; claims of no row have formulas that ask for none."""
        assert self.timing is not None, "specs demand a row for this formula"
        return self.timing

    def seconds_of(self, epochs: int | None) -> Decimal:
        """The time of so many epochs, or of all the work; raises InputError, as do all below."""
        assert self.seconds is not None, "a row has a time"
        if epochs is None:
            return self.seconds
        return self.seconds * epochs / self.known(self.row.epochs, "epochs")

    def known(self, value: Decimal | int | None, what: str) -> Decimal:
        """An input that the formula needs."""
        if value is None:
            raise InputError(f"{self.row.id}: expected {what}, got a row without")
        return Decimal(value)


def evaluate(claim: Claim, job: RowInputs, reference: RowInputs | None) -> Decimal:
    """The figure that a claim is about, in its unit; to be called inside `exact_arithmetic`.

    Raises InputError where the row lacks an input or its price cannot be applied.
    """
    formula = claim.formula
    if isinstance(formula, Product):
        return _product(formula)
    value = _against(formula, job, reference) if isinstance(formula, Against) else _own(claim, job)
    return value / _BASE_UNITS.get(claim.unit, Decimal(1))


def _own(claim: Claim, job: RowInputs) -> Decimal:
    match claim.formula:
        case Bill() as bill:
            return _bill(job, bill.price, bill.epochs, bill.billing)
        case Duration() as duration:
            return job.seconds_of(duration.epochs)
        case Energy() as energy:
            return _energy(energy, job)
        case RateDrop() as drop:
            return _rate_drop(drop, job)
    steps = job.known(job.row.total_steps, "steps")
    if claim.formula.name == "step-time":
        return job.seconds_of(None) / steps
    return steps * job.known(job.row.batch_size, "batch_size")


def _bill(
    job: RowInputs,
    price_id: str | None,
    epochs: int | None = None,
    billing: BillingName = "prorated",
) -> Decimal:
    price = job.prices.get(price_id or job.row.price or "")
    if price is None or price.currency != "USD":
        got = f"{price.id} in {price.currency}" if price else "none"
        raise InputError(f"{job.row.id}: expected a price in USD, got {got}")
    usage = Usage(job.seconds_of(epochs), count=job.row.count)
    if billing == "prorated":
        return share(price, usage).total
    return quote(price, usage, billing=BILLING_RULES[billing], credit=Decimal(0)).total


def _against(formula: Against, job: RowInputs, reference: RowInputs | None) -> Decimal:
    assert reference is not None, "specs demand a row to compare with"
    if formula.name == "relative-cost":
        return _bill(job, None) / _bill(reference, None)
    own, other = job.seconds_of(None), reference.seconds_of(None)
    return other / own if formula.name == "speed-up" else own / other


def _energy(formula: Energy, job: RowInputs) -> Decimal:
    assumed = ASSUMPTIONS[formula.assumptions]
    power = job.known(job.row.power_watts, "power_watts")
    energy = energy_kwh(power, job.seconds_of(None), assumed.pue)
    if formula.name == "energy":
        return energy
    return emissions_pounds(energy, assumed.pounds_per_kwh)


def _rate_drop(formula: RateDrop, job: RowInputs) -> Decimal:
    batch = int(job.known(job.row.batch_size, "batch_size"))
    drop = Decimal(formula.epochs * (formula.examples_per_epoch // batch))
    if formula.name == "rate-drop":
        return drop
    return job.known(job.row.total_steps, "steps") / drop


def _product(formula: Product) -> Decimal:
    dividend = prod((factor.value for factor in formula.factors), start=Decimal(1))
    return dividend / prod((factor.value for factor in formula.divisors), start=Decimal(1))


@dataclass(frozen=True, slots=True)
class RecomputedFigure:
    """Our figure in the claim's unit: from the times as given, and from all that round to them."""

    exact: Decimal
    low: Decimal
    high: Decimal


@dataclass(frozen=True, slots=True)
class ClaimCheck:
    """A claim beside our figure, or why there is none (``problem``, a sentence for people)."""

    claim: Claim
    figure: RecomputedFigure | None
    problem: str | None = None

    @property
    def ours(self) -> Decimal | None:
        """Our figure rounded as the source prints; halves round up, as print does."""
        if self.figure is None:
            return None
        return self.figure.exact.quantize(self.claim.value, rounding=ROUND_HALF_UP)

    @property
    def equal(self) -> bool:
        """Whether the source is right at its printed precision, by our figure."""
        if self.ours is None:
            return False
        if self.claim.relation == "at-least":
            return self.ours >= self.claim.value
        return self.ours == self.claim.value

    @property
    def agreement(self) -> Agreement:
        """The outcome; within rounding: equal for some time that the source may have rounded."""
        if self.figure is None:
            return "not recomputed"
        if self.equal:
            return "equal"
        half = half_unit(self.claim.value)
        near = self.figure.low - half <= self.claim.value <= self.figure.high + half
        return "within rounding" if near else "differs"


@dataclass(frozen=True, slots=True)
class RowChecks:
    """The checks of one row; ``timing`` None for the claims of no row."""

    timing: Timing | None
    checks: tuple[ClaimCheck, ...]


def recompute(published: Published, prices: Mapping[str, Price]) -> tuple[RowChecks, ...]:
    """Every figure of a published table, row by row, recomputed from the row's inputs."""
    rows = {timing.id: timing for timing in published.timings}
    checked = [
        RowChecks(timing, tuple(_check(claim, timing, rows, prices) for claim in timing.claims))
        for timing in published.timings
    ]
    loose = tuple(_check(claim, None, rows, prices) for claim in published.claims)
    return (*checked, RowChecks(None, loose)) if loose else tuple(checked)


def _check(
    claim: Claim, timing: Timing | None, rows: Mapping[str, Timing], prices: Mapping[str, Price]
) -> ClaimCheck:
    if isinstance(claim.formula, NotGiven):
        return ClaimCheck(claim, None, "the source does not say what it follows from")
    reference = rows[claim.formula.to] if isinstance(claim.formula, Against) else None
    try:
        with exact_arithmetic():
            return ClaimCheck(claim, _figure(claim, timing, reference, prices))
    except InputError as error:
        return ClaimCheck(claim, None, str(error))


def _figure(
    claim: Claim, timing: Timing | None, reference: Timing | None, prices: Mapping[str, Price]
) -> RecomputedFigure:
    """The figure at the times as given, and its extremes over all times that round to them."""

    def at(own: Decimal | None, other: Decimal | None) -> Decimal:
        beside = RowInputs(reference, other, prices) if reference else None
        return evaluate(claim, RowInputs(timing, own, prices), beside)

    given = at(_seconds(timing), _seconds(reference))
    ends = [at(*times) for times in product(_rounded_to(timing), _rounded_to(reference))]
    return RecomputedFigure(given, min(ends), max(ends))


def _seconds(timing: Timing | None) -> Decimal | None:
    return timing.total_seconds if timing else None


def _rounded_to(timing: Timing | None) -> tuple[Decimal | None, ...]:
    return timing.total_seconds_range if timing else (None,)
