"""How sure a cost is: the intervals of its inputs as one interval, and which input matters most."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal

from epochcost.cost.estimate import Estimate
from epochcost.cost.money import exact_arithmetic, kept
from epochcost.cost.priced_job import PricedJob

TIME, INTERRUPTIONS = "time", "interruptions"
# The ends of what interruptions do: one run in twenty lies beyond each.
_LOW, _HIGH = 0.05, 0.95


@dataclass(frozen=True, slots=True)
class Part:
    """The bill with one input at the ends of its interval and all others as they are.

    ``name`` is TIME, INTERRUPTIONS or the key path of a figure with a declared range.
    """

    name: str
    low: Decimal
    high: Decimal

    @property
    def width(self) -> Decimal:
        """How far apart its ends are."""
        return self.high - self.low


@dataclass(frozen=True, slots=True)
class CostInterval:
    """A cost and the ends between which it lies, with the parts that make them; widest first."""

    cost: Estimate
    parts: tuple[Part, ...]

    @property
    def largest(self) -> Part | None:
        """The part that contributes most; None where nothing is uncertain."""
        return self.parts[0] if self.parts and self.parts[0].width > 0 else None


def cost_interval(job: PricedJob) -> CostInterval:
    """The cost of a job with all that is uncertain about it.

    Parts are the interval of the measured mean time, 5 to 95 % of what interruptions do, and each
    of the price's ``ranges``. The distances of their ends from the bill add up as the root of the
    sum of squares, each side by itself: so independent deviations add where the bill is nearly
    linear in each (J. R. Taylor, An Introduction to Error Analysis, 1997, chapter 3), and billing
    is, but for its steps. Sampling would demand distributions that no source gives for declared
    ranges. Raises InputError where a range's end makes no plan, or no bill can be made.
    """
    bill = job.bill()
    parts = tuple(sorted(_parts(job, bill.total), key=lambda part: -part.width))
    with exact_arithmetic():
        below = _together(bill.total - part.low for part in parts)
        above = _together(part.high - bill.total for part in parts)
        low, high = max(Decimal(0), bill.total - below), bill.total + above
    return CostInterval(
        Estimate(low, bill.total, high, bill.currency, job.price.id, job.price.assumed), parts
    )


def _parts(job: PricedJob, total: Decimal) -> Iterator[Part]:
    if job.time.low < job.time.high:
        yield _part(TIME, total, job.bill(job.time.low).total, job.bill(job.time.high).total)
    if job.interrupted:
        yield _part(INTERRUPTIONS, total, job.bill_at(_LOW).total, job.bill_at(_HIGH).total)
    for path, declared in job.price.ranges.items():
        ends = tuple(
            job.changed(path, value).bill().total for value in (declared.low, declared.high)
        )
        yield _part(path, total, *ends)


def _part(name: str, total: Decimal, *ends: Decimal) -> Part:
    """The ends in order; a utilisation's low end makes the high cost."""
    return Part(name, min(total, *ends), max(total, *ends))


def _together(distances: Iterable[Decimal]) -> Decimal:
    squares = sum((distance * distance for distance in distances), Decimal(0))
    return kept(squares.sqrt())
