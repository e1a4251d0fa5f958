"""How uncertain a job's cost is, and how far an input must change until the cost is a given amount.

An input is a number of the price plan, named by its key path, or the machine's speed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal

from epochcost.cost.bill import NINE_OF_TEN, quote_quantile
from epochcost.cost.estimate import Estimate, MachineTime
from epochcost.cost.lines import Quote
from epochcost.cost.money import exact_arithmetic, quantized
from epochcost.errors import InputError
from epochcost.specs.price import Price, value_at, with_value

# The only input that is not a number of the price: a factor of the machine's speed.
SPEED = "speed"
# The search covers an input's value divided and multiplied by two to this power: a million.
_DOUBLINGS = 20
# Steps of bisection between two powers of two, for a value of 18 digits.
_HALVINGS = 60
# If an input is zero, the search begins at this value.
_FROM_ZERO = Decimal("0.001")
TIME, INTERRUPTIONS = "time", "interruptions"


@dataclass(frozen=True, slots=True)
class PricedJob:
    """A job and its price plan; ``with_input`` returns a copy in which one number is changed."""

    price: Price
    work: MachineTime

    def bill(self, seconds: Decimal | None = None) -> Quote:
        """The bill without free credit if the job takes ``seconds``, by default the mean time."""
        return self.work.quote(self.price, seconds)

    @property
    def interruptible(self) -> bool:
        """Whether interruptions make the bill uncertain."""
        terms = self.price.interruptions
        return not self.work.shared and terms is not None and terms.rate_per_hour > 0

    def value(self, name: str) -> Decimal:
        """The current value of an input, 1 for the speed; raises InputError for an unknown one."""
        return Decimal(1) if name == SPEED else value_at(self.price, name)

    def with_input(self, name: str, value: Decimal) -> PricedJob:
        """The job with another value of an input; raises InputError if the value is not allowed."""
        if name != SPEED:
            return replace(self, price=with_value(self.price, name, value))
        if not value.is_finite() or value <= 0:
            raise InputError(f"speed: expected a finite factor above 0, got {value}")
        with exact_arithmetic():
            faster = replace(self.work, time=self.work.time.scaled(1 / value))
        return replace(self, work=faster)

    def input_names(self) -> Iterator[str]:
        """Names of the inputs: prices, utilisation, electricity, interruptions, speed."""
        price = self.price
        if price.amount is not None:
            yield "amount"
        for position, part in enumerate(price.components):
            yield f"components[{position}].{'amount' if part.amount is not None else 'percent'}"
        if price.commitment is not None:
            yield "commitment.utilisation"
        if price.owned is not None:
            yield from ("owned.purchase", "owned.utilisation", "owned.electricity_per_kwh")
        if self.interruptible:
            yield "interruptions.rate_per_hour"
        yield SPEED


@dataclass(frozen=True, slots=True)
class Switch:
    """The ``value`` of an input at which a job would cost a given amount, and its value ``now``."""

    name: str
    now: Decimal
    value: Decimal


def switching_value(job: PricedJob, name: str, cost: Decimal) -> Switch | None:
    """The value of an input, nearest to its current value, at which the job costs ``cost``.

    None if no valid value within a factor of a million gives that cost. Raises InputError if the
    job cannot be billed or has no input ``name``.
    """
    now = job.value(name)
    dearer = job.bill().total > cost

    def crossed(value: Decimal) -> bool | None:
        """Whether the cost reaches ``cost`` at ``value``; None if ``value`` is not allowed."""
        try:
            total = job.with_input(name, value).bill().total
        except InputError:
            return None
        return total <= cost if dearer else total >= cost

    with exact_arithmetic():
        ends = [_bracket_crossing(now, factor, crossed) for factor in (Decimal(2), Decimal("0.5"))]
        values = [_bisected(*bracket, crossed) for bracket in ends if bracket is not None]
    nearest = min(values, key=lambda value: abs(value - now), default=None)
    return None if nearest is None else Switch(name, now, nearest)


def _bracket_crossing(
    now: Decimal, factor: Decimal, crossed: Callable[[Decimal], bool | None]
) -> tuple[Decimal, Decimal] | None:
    """Two values of an input between which the job's cost passes the sought cost.

    The search multiplies ``now`` by ``factor`` until ``crossed`` is true, and returns the last two
    values. It returns None if ``crossed`` stays false or is None.
    """
    near, far = now, now * factor or _FROM_ZERO
    for _ in range(_DOUBLINGS):
        there = crossed(far)
        if there is None and near < 1 < far:
            far = Decimal(1)
            there = crossed(far)
        if there:
            return near, far
        if there is None:
            return None
        near, far = far, far * factor
    return None


def _bisected(near: Decimal, far: Decimal, crossed: Callable[[Decimal], bool | None]) -> Decimal:
    for _ in range(_HALVINGS):
        middle = (near + far) / 2
        near, far = (near, middle) if crossed(middle) else (middle, far)
    return far


@dataclass(frozen=True, slots=True)
class InputInterval:
    """The range of the bill if one input varies over its interval and all others are fixed.

    ``name`` is TIME, INTERRUPTIONS, or the key path of a number with a range in the price.
    """

    name: str
    low: Decimal
    high: Decimal

    @property
    def width(self) -> Decimal:
        """The difference between the highest and the lowest bill."""
        return self.high - self.low


@dataclass(frozen=True, slots=True)
class CostInterval:
    """A cost with its interval; ``parts`` has the interval of each input alone, widest first."""

    cost: Estimate
    parts: tuple[InputInterval, ...]

    @property
    def largest(self) -> InputInterval | None:
        """The widest of ``parts``, which one input causes; None if nothing is uncertain."""
        return self.parts[0] if self.parts and self.parts[0].width > 0 else None


def cost_interval(job: PricedJob) -> CostInterval:
    """The cost of a job, with an interval that covers all its uncertain inputs together.

    The inputs are the mean time, interruptions from their 5th to 95th percentile, and the numbers
    for which the price declares ``ranges``. Independent inputs are combined as in J. R. Taylor, An
    Introduction to Error Analysis, 1997, chapter 3. Raises InputError if no bill can be made.
    """
    bill = job.bill()
    parts = tuple(sorted(_parts(job, bill.total), key=lambda part: -part.width))
    with exact_arithmetic():
        # Roots of sums of squared distances are right if the bill is nearly linear in each input.
        below = _together(bill.total - part.low for part in parts)
        above = _together(part.high - bill.total for part in parts)
        low, high = max(Decimal(0), bill.total - below), bill.total + above
    price, bounded = job.price, job.work.time.bounded
    estimate = Estimate(low, bill.total, high, bill.currency, price.id, price.assumed, bounded)
    return CostInterval(estimate, parts)


def _parts(job: PricedJob, total: Decimal) -> Iterator[InputInterval]:
    time = job.work.time
    if time.low < time.high:
        yield _input_interval(TIME, total, job.bill(time.low).total, job.bill(time.high).total)
    if job.interruptible:
        usage = job.work.usage()
        ends = (quote_quantile(job.price, usage, share).total for share in NINE_OF_TEN)
        yield _input_interval(INTERRUPTIONS, total, *ends)
    for path, declared in job.price.ranges.items():
        ends = (job.with_input(path, end).bill().total for end in (declared.low, declared.high))
        yield _input_interval(path, total, *ends)


def _input_interval(name: str, total: Decimal, *ends: Decimal) -> InputInterval:
    return InputInterval(name, min(total, *ends), max(total, *ends))


def _together(distances: Iterable[Decimal]) -> Decimal:
    squares = sum((distance * distance for distance in distances), Decimal(0))
    return quantized(squares.sqrt())
