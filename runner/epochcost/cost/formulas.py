"""What each formula of a published figure computes, in base units, from a row's inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from math import prod
from types import MappingProxyType

from epochcost.cost.bill import quote, share
from epochcost.cost.energy import ASSUMPTIONS, emissions_pounds, energy_kwh
from epochcost.cost.lines import Usage
from epochcost.errors import InputError
from epochcost.specs.formula import Against, Bill, Duration, Energy, Product, RateDrop, Unit
from epochcost.specs.price import Price
from epochcost.specs.published import Claim, Timing
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


@dataclass(frozen=True, slots=True)
class Job:
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
            raise InputError(f"{self.row.id}: demanded {what}; got a row without")
        return Decimal(value)


def evaluate(claim: Claim, job: Job, reference: Job | None) -> Decimal:
    """The figure that a claim is about, in its unit; to be called inside `exact_arithmetic`.

    Raises InputError where the row lacks an input or its price cannot be applied.
    """
    formula = claim.formula
    if isinstance(formula, Product):
        return _product(formula)
    value = _against(formula, job, reference) if isinstance(formula, Against) else _own(claim, job)
    return value / _BASE_UNITS.get(claim.unit, Decimal(1))


def _own(claim: Claim, job: Job) -> Decimal:
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
    job: Job, price_id: str | None, epochs: int | None = None, billing: BillingName = "prorated"
) -> Decimal:
    price = job.prices.get(price_id or job.row.price or "")
    if price is None or price.currency != "USD":
        got = f"{price.id} in {price.currency}" if price else "none"
        raise InputError(f"{job.row.id}: demanded a price in USD; got {got}")
    usage = Usage(job.seconds_of(epochs), count=job.row.count)
    if billing == "prorated":
        return share(price, usage).total
    return quote(price, usage, billing=BILLING_RULES[billing], credit=Decimal(0)).total


def _against(formula: Against, job: Job, reference: Job | None) -> Decimal:
    assert reference is not None, "specs demand a row to compare with"
    if formula.name == "relative-cost":
        return _bill(job, None) / _bill(reference, None)
    own, other = job.seconds_of(None), reference.seconds_of(None)
    return other / own if formula.name == "speed-up" else own / other


def _energy(formula: Energy, job: Job) -> Decimal:
    assumed = ASSUMPTIONS[formula.assumptions]
    power = job.known(job.row.power_watts, "power_watts")
    energy = energy_kwh(power, job.seconds_of(None), assumed.pue)
    if formula.name == "energy":
        return energy
    return emissions_pounds(energy, assumed.pounds_per_kwh)


def _rate_drop(formula: RateDrop, job: Job) -> Decimal:
    batch = int(job.known(job.row.batch_size, "batch_size"))
    drop = Decimal(formula.epochs * (formula.examples_per_epoch // batch))
    if formula.name == "rate-drop":
        return drop
    return job.known(job.row.total_steps, "steps") / drop


def _product(formula: Product) -> Decimal:
    dividend = prod((factor.value for factor in formula.factors), start=Decimal(1))
    return dividend / prod((factor.value for factor in formula.divisors), start=Decimal(1))
