"""What a cost was and what it is: by how much it changed, and what of that each cause made. Pure.

Which costs belong together, and what the causes are called, is known to whoever reads two
revisions; here two bills are taken apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Literal

from epochcost.cost.estimate import Cost, Estimate, MachineTime, Time
from epochcost.cost.money import exact_arithmetic
from epochcost.errors import InputError
from epochcost.specs.price import Price

# "spec": how much work there is, or what the machine is; "method": what measured it, and how.
# "prediction": what a time that nobody took is predicted from.
Cause = Literal["time", "method", "prediction", "spec", "price"]


@dataclass(frozen=True, slots=True)
class Basis:
    """A cost and what it follows from.

    ``work`` is the whole job's and ``step`` the time of one step in it, None where that is unknown.
    """

    cost: Cost
    work: MachineTime
    step: Time | None
    price: Price | None


@dataclass(frozen=True, slots=True)
class Contribution:
    """What one cause adds to a cost, in its currency; negative where it saves."""

    cause: Cause
    amount: Decimal


def cost_changed(before: Cost | None, after: Cost | None) -> bool:
    """Whether a reader is shown another cost: another amount, or one where there was none."""
    if isinstance(before, Estimate) and isinstance(after, Estimate):
        return (before.mean, before.currency) != (after.mean, after.currency)
    return type(before) is not type(after)


def amount_of_change(before: Cost | None, after: Cost | None) -> Decimal | None:
    """After less before; None where either is no amount, or they are in two currencies."""
    if not (isinstance(before, Estimate) and isinstance(after, Estimate)):
        return None
    if before.currency != after.currency:
        return None
    with exact_arithmetic():
        return after.mean - before.mean


def relative_change(before: Cost | None, after: Cost | None) -> float | None:
    """The change over what it was; None where there is none, or it was free."""
    change = amount_of_change(before, after)
    if change is None or not isinstance(before, Estimate) or before.mean == 0:
        return None
    return float(change) / float(before.mean)


def contributions(before: Basis, after: Basis, timed: Cause = "time") -> tuple[Contribution, ...]:
    """What each cause adds, in this order; they sum to the change exactly, and none is zero.

    The causes are put in one after the other: the new time of a step (its cause is ``timed``), the
    new amount of work and the new machine, the new price. Empty where there is no amount of change.
    """
    change = amount_of_change(before.cost, after.cost)
    if change is None or before.price is None:
        return ()
    return tuple(part for part in _one_by_one(before, after, timed) if part.amount)


def _one_by_one(before: Basis, after: Basis, timed: Cause) -> tuple[Contribution, ...]:
    assert isinstance(before.cost, Estimate), "what is no amount has no parts"
    assert isinstance(after.cost, Estimate), "what is no amount has no parts"
    causes: tuple[Cause, ...] = (timed, "spec", "price")
    at_new_work = _at_new_work(before, after, before.cost.mean, after.cost.mean)
    at_new_step = _at_new_step(before, after, before.cost.mean, at_new_work)
    if at_new_step is None or at_new_work is None:  # the old price cannot bill the new work
        return ()
    amounts = (before.cost.mean, at_new_step, at_new_work, after.cost.mean)
    found: dict[Cause, Decimal] = {}
    with exact_arithmetic():
        for cause, (earlier, later) in zip(causes, pairwise(amounts), strict=True):
            found[cause] = found.get(cause, Decimal(0)) + later - earlier
    return tuple(Contribution(cause, amount) for cause, amount in found.items())


# A bill that is known already is not made again: comparisons have thousands of them.
def _at_new_work(before: Basis, after: Basis, was: Decimal, now: Decimal) -> Decimal | None:
    """The new work at the old price."""
    if before.price == after.price:
        return now
    same = before.work.time.mean == after.work.time.mean and _machine(before) == _machine(after)
    return was if same else _bill(after, after.work.time.mean, before.price)


def _at_new_step(
    before: Basis, after: Basis, was: Decimal, at_new_work: Decimal | None
) -> Decimal | None:
    """The old number of the new steps at the old price."""
    seconds = _with_step_of(before, after)
    if seconds == before.work.time.mean:
        return was
    if seconds == after.work.time.mean and _machine(before) == _machine(after):
        return at_new_work
    return _bill(before, seconds, before.price)


def _machine(basis: Basis) -> tuple[object, ...]:
    return *basis.work.machine, basis.work.shared


def _with_step_of(before: Basis, after: Basis) -> Decimal:
    """The seconds of the old job with the new step's; all of the new time where steps are unknown.

    Where only the step changed this is the new time itself, not a rounding of it.
    """
    if before.step is None or after.step is None:
        return after.work.time.mean
    if before.step.mean == after.step.mean:
        return before.work.time.mean
    with exact_arithmetic():
        if before.work.time.mean * after.step.mean == after.work.time.mean * before.step.mean:
            return after.work.time.mean
        return before.work.time.mean * after.step.mean / before.step.mean


def _bill(basis: Basis, seconds: Decimal, price: Price | None) -> Decimal | None:
    """The cost at the mean; None where the price cannot bill it."""
    if price is None:
        return None
    try:
        return basis.work.quote(price, seconds).total
    except InputError:
        return None
