"""Turn a time and a price plan into a cost with an interval, or say why the cost is unknown."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache

from epochcost.cost.bill import in_constant_use, quote, share
from epochcost.cost.lines import Quote, Usage
from epochcost.cost.money import QUANTUM, exact_arithmetic
from epochcost.errors import InputError
from epochcost.specs.price import Price
from epochcost.units import money

# A low end below the mean divided by this is no bound; a few scattered samples give such intervals.
WIDEST = 1000


@dataclass(frozen=True, slots=True)
class Time:
    """A finite time with its interval in s; raises InputError unless 0 < low <= mean <= high."""

    low: Decimal
    mean: Decimal
    high: Decimal

    def __post_init__(self) -> None:
        finite = all(seconds.is_finite() for seconds in (self.low, self.mean, self.high))
        if not finite or not 0 < self.low <= self.mean <= self.high:
            raise InputError(
                "time: expected 0 < low <= mean <= high, finite, in seconds, "
                f"got low {self.low}, mean {self.mean}, high {self.high}"
            )

    @classmethod
    def from_floats(cls, low: float, mean: float, high: float) -> Time:
        """A time from floats, each converted to the shortest decimal that gives the same float.

        The low end becomes at least 1e-18 s, and the interval is extended to include the mean.
        """
        least = float(QUANTUM)
        ends = min(max(low, least), mean), mean, max(high, mean)
        return cls(*(Decimal(repr(float(seconds))) for seconds in ends))

    @classmethod
    def exact(cls, seconds: Decimal) -> Time:
        """A time whose interval has no width, such as a time from a published table."""
        return cls(seconds, seconds, seconds)

    @property
    def bounded(self) -> bool:
        """Whether the interval's low end is a usable bound: at least a thousandth of the mean."""
        return self.mean <= WIDEST * self.low

    @property
    def known_low(self) -> Decimal | None:
        """The interval's low end, or None if it is below a thousandth of the mean."""
        return self.low if self.bounded else None

    def scaled(self, repetitions: int | Decimal) -> Time:
        """The time of doing the same work ``repetitions`` times, one after the other."""
        with exact_arithmetic():
            return Time(self.low * repetitions, self.mean * repetitions, self.high * repetitions)


@dataclass(frozen=True, slots=True)
class Estimate:
    """The costs for the low end, the mean and the high end of a time.

    ``mean`` is the bill of the mean time, not a mean of bills. ``time_bounded`` is `Time.bounded`.
    """

    low: Decimal
    mean: Decimal
    high: Decimal
    currency: str
    price_id: str
    assumed: bool
    time_bounded: bool = field(default=True, repr=False)

    @property
    def bounded(self) -> bool:
        """Whether the low end is a usable lower bound: at least a thousandth of the mean.

        The low end of the time must be usable, too, because a minimum charge can hide that it is
        not. If the costs at both ends are equal, the time need not be.
        """
        whole = self.time_bounded or self.low == self.high
        return whole and self.mean <= WIDEST * self.low

    @property
    def known_low(self) -> Decimal | None:
        """The low end of the cost; None if it is no usable lower bound (see ``bounded``)."""
        return self.low if self.bounded else None

    @property
    def between(self) -> str:
        """The range as text: only the high end unless ``bounded``, empty if both ends are equal."""
        if self.low == self.high:
            return ""
        high = money(self.high, self.currency)
        return f"{money(self.low, self.currency)} to {high}" if self.bounded else f"at most {high}"


@dataclass(frozen=True, slots=True)
class Unpriced:
    """An unknown cost, as opposed to a cost of zero; ``reason`` is a phrase for people."""

    reason: str


Cost = Estimate | Unpriced


@dataclass(frozen=True, slots=True)
class MachineTime:
    """The time of a job on ``machines`` equal machines, and what else decides its price.

    If ``shared``, the job is a part of a longer job, such as an epoch, and is billed without starts
    and rounding. If ``serving``, the machine is never idle, so a plan's utilisation counts as 1.
    Only plans per vCPU need ``vcpus``, the number of one machine.
    """

    time: Time
    vcpus: int | None = None
    accelerated: bool = False
    shared: bool = False
    machines: int = 1
    serving: bool = False

    def usage(self, seconds: Decimal | None = None) -> Usage:
        """The usage to bill if the job takes ``seconds``; the default is the mean time."""
        duration = self.time.mean if seconds is None else seconds
        return Usage(duration, self.machines, self.vcpus, self.accelerated)

    def quote(self, price: Price, seconds: Decimal | None = None) -> Quote:
        """The bill without free credit if the job takes ``seconds``, by default the mean time.

        Raises InputError if the plan cannot bill the job, such as one per vCPU without ``vcpus``.
        """
        usage = self.usage(seconds)
        price = in_constant_use(price) if self.serving else price
        return share(price, usage) if self.shared else quote(price, usage, credited=False)

    def cost(self, price: Price | None) -> Cost:
        """The costs for the time and its ends; Unpriced if no price is known or applicable."""
        if price is None:
            return Unpriced("no price is known")
        time, total = self.time, cache(lambda seconds: self.quote(price, seconds).total)
        try:
            low, mean, high = map(total, (time.low, time.mean, time.high))
        except InputError as error:
            return Unpriced(str(error))
        return Estimate(low, mean, high, price.currency, price.id, price.assumed, time.bounded)
