"""Times with an interval become costs with an interval, or say why they have none.

What takes how long, and under which plan it is priced, is left to whoever asks.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from epochcost.cost.bill import quote, share
from epochcost.cost.lines import Quote, Usage
from epochcost.cost.money import QUANTUM, exact_arithmetic
from epochcost.errors import InputError
from epochcost.specs.price import Price
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
                "time: expected 0 < low <= mean <= high, finite, in seconds, "
                f"got low {self.low}, mean {self.mean}, high {self.high}"
            )

    @classmethod
    def from_floats(cls, low: float, mean: float, high: float) -> Time:
        """Take binary numbers, by the shortest decimal that reads back as the same float.

        The interval of a few scattered samples may reach below zero, which no time does, and that
        of equal samples may miss their mean by a rounding: both are mended here.
        """
        least = float(QUANTUM)
        ends = min(max(low, least), mean), mean, max(high, mean)
        return cls(*(Decimal(repr(float(seconds))) for seconds in ends))

    @classmethod
    def exact(cls, seconds: Decimal) -> Time:
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


@dataclass(frozen=True, slots=True)
class MachineTime:
    """The time of ``machines`` alike for a job, and the facts of each that its price depends on.

    ``shared`` work is a part of a longer job: it is charged its share of that bill, without
    rounding or starts. ``vcpus`` and ``accelerated`` are as in ``Usage``.
    """

    time: Time
    vcpus: int | None = None
    accelerated: bool = False
    shared: bool = False
    machines: int = 1

    @property
    def machine(self) -> tuple[int | None, bool]:
        """The facts of the machine that its price depends on."""
        return self.vcpus, self.accelerated

    def usage(self, seconds: Decimal | None = None) -> Usage:
        """The usage of the mean time, or of another."""
        duration = self.time.mean if seconds is None else seconds
        return Usage(duration, self.machines, self.vcpus, self.accelerated)

    def quote(self, price: Price, seconds: Decimal | None = None) -> Quote:
        """The bill of the mean time, or of another, without credit; raises InputError as it does.

        Free credit changes who pays and not what a job costs.
        """
        usage = self.usage(seconds)
        return share(price, usage) if self.shared else quote(price, usage, credited=False)

    def cost(self, price: Price | None) -> Cost:
        """The cost over the time's interval: the totals of its bills.

        Unpriced, with the reason, without a price and where the plan cannot be applied.
        """
        if price is None:
            return Unpriced("no price is known")
        time = self.time
        try:
            with exact_arithmetic():
                totals = {
                    seconds: self.quote(price, seconds).total
                    for seconds in dict.fromkeys((time.low, time.mean, time.high))
                }
        except InputError as error:
            return Unpriced(str(error))
        low, mean, high = (totals[seconds] for seconds in (time.low, time.mean, time.high))
        return Estimate(low, mean, high, price.currency, price.id, price.assumed)
