"""What a cost was and what it is: by how much it changed, and what of that each cause made. Pure.

Which costs belong together, and what the causes are called, is known to whoever reads two
revisions; here two bills are taken apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Literal

from epochcost.cost.estimate import Cost, Estimate, Time, Unpriced, billed_cost, prorated_cost
from epochcost.cost.money import exact_arithmetic
from epochcost.specs.price import Price

# "spec": how much work there is, or what the machine is; "method": what measured it, and how.
Cause = Literal["time", "method", "spec", "price"]


@dataclass(frozen=True, slots=True)
class Basis:
    """A cost and what it follows from.

    ``time`` is of the whole job and ``step`` that of one step in it, None where it is not known.
    ``shared``: a share of a running job, and not a job billed by itself.
    """

    cost: Cost
    time: Time
    step: Time | None
    price: Price | None
    vcpus: int | None
    accelerated: bool
    shared: bool


@dataclass(frozen=True, slots=True)
class Part:
    """What one cause adds to a cost, in its currency; negative where it saves."""

    cause: Cause
    amount: Decimal


def changed(before: Cost | None, after: Cost | None) -> bool:
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


def parts(before: Basis, after: Basis, timed: Cause = "time") -> tuple[Part, ...]:
    """What each cause adds, in this order; parts sum to the change exactly, and none is zero.

    The causes are put in one after the other: the new time of a step (its cause is ``timed``), the
    new amount of work and the new machine, the new price. Empty where there is no amount of change.
    """
    change = amount_of_change(before.cost, after.cost)
    if change is None or before.price is None:
        return ()
    return tuple(part for part in _one_by_one(before, after, timed) if part.amount)


def _one_by_one(before: Basis, after: Basis, timed: Cause) -> tuple[Part, ...]:
    assert isinstance(before.cost, Estimate), "what is no amount has no parts"
    assert isinstance(after.cost, Estimate), "what is no amount has no parts"
    assert before.price is not None, "what has a cost has a price"
    causes: tuple[Cause, ...] = (timed, "spec", "price")
    at_new_step = at_new_work = before.cost.mean
    if not _same_work(before, after):
        stepped = _bill(before, _with_step_of(before, after), before.price)
        worked = _bill(after, after.time.mean, before.price)
        if stepped is None or worked is None:  # the old price cannot bill the new work
            return ()
        at_new_step, at_new_work = stepped, worked
    amounts = (before.cost.mean, at_new_step, at_new_work, after.cost.mean)
    found: dict[Cause, Decimal] = {}
    with exact_arithmetic():
        for cause, (earlier, later) in zip(causes, pairwise(amounts), strict=True):
            found[cause] = found.get(cause, Decimal(0)) + later - earlier
    return tuple(Part(cause, amount) for cause, amount in found.items())


def _same_work(before: Basis, after: Basis) -> bool:
    work = ("time", "step", "vcpus", "accelerated", "shared")
    return all(getattr(before, name) == getattr(after, name) for name in work)


def _with_step_of(before: Basis, after: Basis) -> Decimal:
    """The seconds of the old job with the new step's; all of the new time where steps are unknown.

    Where only the step changed this is the new time itself, not a rounding of it.
    """
    if before.step is None or after.step is None:
        return after.time.mean
    if before.step.mean == after.step.mean:
        return before.time.mean
    with exact_arithmetic():
        if before.time.mean * after.step.mean == after.time.mean * before.step.mean:
            return after.time.mean
        return before.time.mean * after.step.mean / before.step.mean


def _bill(basis: Basis, seconds: Decimal, price: Price) -> Decimal | None:
    bill = prorated_cost if basis.shared else billed_cost
    cost = bill(price, Time.exactly(seconds), vcpus=basis.vcpus, accelerated=basis.accelerated)
    return None if isinstance(cost, Unpriced) else cost.mean
