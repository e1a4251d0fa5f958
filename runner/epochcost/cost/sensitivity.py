"""What moves an answer: the effect of each input on a cost, and where another choice is as cheap.

Both bill the job anew at each value; nothing is derived from a formula of the bill.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from epochcost.cost.money import exact_arithmetic
from epochcost.cost.priced_job import PricedJob
from epochcost.errors import InputError

TENTH = Decimal("0.1")
# How far from its value an input is searched: a factor of a million either way.
_DOUBLINGS = 20
# Halvings of a bracket between two powers of two: 18 digits.
_HALVINGS = 60
# Where the search begins for an input that is zero.
_FROM_ZERO = Decimal("0.001")


@dataclass(frozen=True, slots=True)
class Effect:
    """The cost with one input lower and higher by a share; None where no plan may be so."""

    name: str
    value: Decimal
    lower: Decimal | None
    higher: Decimal | None
    cost: Decimal

    @property
    def size(self) -> Decimal:
        """The larger of both changes of the cost."""
        ends = [end for end in (self.lower, self.higher) if end is not None]
        return max((abs(end - self.cost) for end in ends), default=Decimal(0))


@dataclass(frozen=True, slots=True)
class Switch:
    """The value of an input, ``now`` another, at which a job costs a given amount."""

    name: str
    now: Decimal
    value: Decimal


def effects(job: PricedJob, change: Decimal = TENTH) -> tuple[Effect, ...]:
    """What each input does to the cost when it is lower or higher by a share; largest first.

    Raises InputError where the job has no bill.
    """
    cost = job.bill().total
    found = []
    for name in job.inputs():
        value = job.value(name)
        lower, higher = (_cost(job, name, value * factor) for factor in (1 - change, 1 + change))
        found.append(Effect(name, value, lower, higher, cost))
    return tuple(sorted(found, key=lambda effect: -effect.size))


def switching_value(job: PricedJob, name: str, cost: Decimal) -> Switch | None:
    """The nearest value of an input at which the job costs so much, by bisection on real bills.

    None where no value within a factor of a million, or that a plan may have, brings it there.
    Raises InputError where the job has no bill or no such input.
    """
    now = job.value(name)
    dearer = job.bill().total > cost

    def crossed(value: Decimal) -> bool | None:
        """Whether the cost there lies on the other side; None where there is no such plan."""
        total = _cost(job, name, value)
        return None if total is None else (total <= cost if dearer else total >= cost)

    with exact_arithmetic():
        ends = [_bracket(now, factor, crossed) for factor in (Decimal(2), Decimal("0.5"))]
        found = [_bisected(*bracket, crossed) for bracket in ends if bracket is not None]
    nearest = min(found, key=lambda value: abs(value - now), default=None)
    return None if nearest is None else Switch(name, now, nearest)


def _bracket(
    now: Decimal, factor: Decimal, crossed: Callable[[Decimal], bool | None]
) -> tuple[Decimal, Decimal] | None:
    """Two values, the cost on the near side at the first and beyond at the second."""
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


def _cost(job: PricedJob, name: str, value: Decimal) -> Decimal | None:
    try:
        return job.changed(name, value).bill().total
    except InputError:
        return None
