"""Times with an interval become costs with an interval, or say why they have none.

And what people ask the price of: a step, an epoch, a full training, a million inferences.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial

from epochcost.cost.bill import quoted_total, shared_total
from epochcost.cost.lines import Usage
from epochcost.cost.money import QUANTUM, exact_arithmetic
from epochcost.errors import InputError
from epochcost.specs.price import Price
from epochcost.specs.terms import Billing
from epochcost.units import money

# A mean so many times its low end has none: a few scattered samples bound it from above only.
WIDEST = 1000


@dataclass(frozen=True, slots=True)
class Time:
    """A mean time in seconds with the interval of that mean; 0 < low <= mean <= high, finite.

    Raises InputError otherwise.
    """

    low: Decimal
    mean: Decimal
    high: Decimal

    def __post_init__(self) -> None:
        finite = all(seconds.is_finite() for seconds in (self.low, self.mean, self.high))
        if not finite or not 0 < self.low <= self.mean <= self.high:
            raise InputError(
                "time: demanded 0 < low <= mean <= high, finite, in seconds; "
                f"got low {self.low}, mean {self.mean}, high {self.high}"
            )

    @classmethod
    def measured(cls, low: float, mean: float, high: float) -> Time:
        """Take binary floats, by the shortest decimal that reads back as the same float.

        The interval of a few scattered samples may reach below zero, which no time does, and that
        of equal samples may miss their mean by a rounding: both are mended here.
        """
        least = float(QUANTUM)
        ends = min(max(low, least), mean), mean, max(high, mean)
        return cls(*(Decimal(repr(float(seconds))) for seconds in ends))

    @classmethod
    def exactly(cls, seconds: Decimal) -> Time:
        """Take a time known without an interval, such as one that a source prints."""
        return cls(seconds, seconds, seconds)

    @property
    def bounded(self) -> bool:
        """Whether the interval has a low end."""
        return self.mean <= WIDEST * self.low

    def scaled(self, repetitions: int | Decimal) -> Time:
        """Repeat it so many times, one after the other."""
        with exact_arithmetic():
            return Time(self.low * repetitions, self.mean * repetitions, self.high * repetitions)


@dataclass(frozen=True, slots=True)
class Estimate:
    """The cost at the low end, at the mean and at the high end of a time.

    Billing in steps makes ``mean`` the bill of the mean time, not the mean of the bills.
    """

    low: Decimal
    mean: Decimal
    high: Decimal
    currency: str
    price_id: str
    assumed: bool

    @property
    def bounded(self) -> bool:
        """Whether the interval has a low end."""
        return self.mean <= WIDEST * self.low

    @property
    def between(self) -> str:
        """The ends for people; empty where mean and ends are one."""
        if self.low == self.high:
            return ""
        high = money(self.high, self.currency)
        return f"{money(self.low, self.currency)} to {high}" if self.bounded else f"at most {high}"


@dataclass(frozen=True, slots=True)
class Unpriced:
    """No cost can be said; ``reason`` is a phrase for people. Never to be read as zero."""

    reason: str


Cost = Estimate | Unpriced


def billed_cost(
    price: Price | None,
    time: Time,
    *,
    vcpus: int | None = None,
    accelerated: bool = False,
    billing: Billing | None = None,
) -> Cost:
    """Bill a job of this duration by itself, under the plan's billing or another rule.

    ``vcpus`` and ``accelerated`` are as in ``Usage``. Free credit is left out: it changes who pays
    and not what it costs. Without a price, or where the plan cannot be applied, Unpriced with the
    reason.
    """
    bill = partial(quoted_total, billing=billing)
    return _estimated(bill, price, time, vcpus, accelerated)


def prorated_cost(
    price: Price | None, time: Time, *, vcpus: int | None = None, accelerated: bool = False
) -> Cost:
    """Charge this time its share of a running job's bill, as ``bill.share`` does."""
    return _estimated(shared_total, price, time, vcpus, accelerated)


def _estimated(
    bill: Callable[[Price, Usage], Decimal],
    price: Price | None,
    time: Time,
    vcpus: int | None,
    accelerated: bool,
) -> Cost:
    if price is None:
        return Unpriced("no price is known")
    try:
        with exact_arithmetic():
            amounts = {
                seconds: bill(price, Usage(seconds, vcpus=vcpus, accelerated=accelerated))
                for seconds in (time.low, time.mean, time.high)
            }
    except InputError as error:
        return Unpriced(str(error))
    low, mean, high = (amounts[seconds] for seconds in (time.low, time.mean, time.high))
    return Estimate(low, mean, high, price.currency, price.id, price.assumed)


MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class TrainingTime:
    """How long a training takes: an epoch's time, and how many epochs; one step where known."""

    epoch: Time
    epochs: int | Decimal
    step: Time | None = None

    @classmethod
    def of_steps(cls, step: Time, steps_per_epoch: int, epochs: int) -> TrainingTime:
        """From the time of one step."""
        return cls(step.scaled(steps_per_epoch), epochs, step)

    @property
    def full(self) -> Time:
        """All epochs, one after the other."""
        return self.epoch.scaled(self.epochs)


@dataclass(frozen=True, slots=True)
class TrainingCosts:
    """The costs of a training under one plan.

    ``step`` and ``epoch`` are shares of a running job (nothing rounded up; ``step`` None where the
    step is unknown), ``epoch_alone`` is one epoch billed by itself, ``full`` the whole job's bill.
    """

    epoch: Cost
    full: Cost
    _time: TrainingTime
    _prorated: Callable[[Time], Cost] = field(compare=False, repr=False)
    _billed: Callable[[Time], Cost] = field(compare=False, repr=False)

    @property
    def step(self) -> Cost | None:
        """A step's share."""
        return None if self._time.step is None else self._prorated(self._time.step)

    @property
    def epoch_alone(self) -> Cost:
        """An epoch as a job by itself."""
        return self._billed(self._time.epoch)


def training_costs(
    price: Price | None,
    time: TrainingTime,
    *,
    vcpus: int | None = None,
    accelerated: bool = False,
) -> TrainingCosts:
    """All four costs of a training; each is Unpriced by itself where it cannot be said."""
    prorated = partial(prorated_cost, price, vcpus=vcpus, accelerated=accelerated)
    billed = partial(billed_cost, price, vcpus=vcpus, accelerated=accelerated)
    return TrainingCosts(
        epoch=prorated(time.epoch),
        full=billed(time.full),
        _time=time,
        _prorated=prorated,
        _billed=billed,
    )


def million_inferences(
    price: Price | None,
    batch: Time,
    batch_size: int,
    *,
    vcpus: int | None = None,
    accelerated: bool = False,
) -> Cost:
    """Charge a million examples served in batches of time ``batch`` on a running machine."""
    with exact_arithmetic():
        batches = Decimal(MILLION) / batch_size
    return prorated_cost(price, batch.scaled(batches), vcpus=vcpus, accelerated=accelerated)
