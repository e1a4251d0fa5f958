"""How a job's time becomes starts and billed time: start-up, restarts, lifetimes, rounding.

Uninterrupted here: what a provider that takes machines back does to a job is in `cost.spot`.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from epochcost.cost.money import exact_arithmetic, kept
from epochcost.cost.tracing import branch, ceiling, steps_begun, where
from epochcost.errors import InputError
from epochcost.specs.price import Price
from epochcost.specs.terms import Billing

_ZERO = Decimal(0)


@dataclass(frozen=True, slots=True)
class Schedule:
    """One run of a job on one machine; all in seconds but the numbers of starts and failures.

    ``used_seconds`` is work, ``starting_seconds`` what start-ups and restarts are billed for.
    Where a machine may be taken back, ``saving_seconds`` are of checkpoints, ``rework_seconds`` of
    lost work, and ``restarting_seconds`` of the starts that follow. ``billed_seconds`` is all of
    them with what billing rounds, ``elapsed_seconds`` the time on the wall, which counts start-ups
    that are not billed and failures that are expected.
    """

    used_seconds: Decimal
    starting_seconds: Decimal
    billed_seconds: Decimal
    elapsed_seconds: Decimal
    starts: Decimal = Decimal(1)
    failures: Decimal = Decimal(0)
    saving_seconds: Decimal = Decimal(0)
    rework_seconds: Decimal = Decimal(0)
    restarting_seconds: Decimal = Decimal(0)


def billed_seconds(used_seconds: Decimal, rule: Billing) -> Decimal:
    """Round the seconds of one start up to those that are billed.

    Use up to the minimum is billed as the minimum, longer use in whole steps (a step of 0: as
    used). Billing billed seconds again changes nothing.
    """
    with exact_arithmetic():
        return rounded(used_seconds, rule)


def share_of_a_start(used_seconds: Decimal) -> Schedule:
    """A share of a machine that runs anyway: nothing starts and nothing is rounded up."""
    return Schedule(used_seconds, Decimal(0), used_seconds, used_seconds, starts=Decimal(0))


def single_start(used_seconds: Decimal, rule: Billing) -> Schedule:
    """One start that takes no time."""
    billed = rounded(used_seconds, rule)
    return Schedule(used_seconds, Decimal(0), billed, used_seconds)


def uninterrupted(price: Price, used_seconds: Decimal, rule: Billing) -> Schedule:
    """As few starts as the plan's maximum lifetime allows, each full but the last.

    Every start begins with the start-up, every one but the first goes on with the restart of
    ``interruptions``, and every one but the last ends with a checkpoint. A start-up that is not
    billed does not count in the lifetime. Of attempts that fail with probability p, p / (1 - p) are
    expected for each that succeeds, and each takes the start-up's time. Raises InputError where a
    lifetime leaves no time to work.
    """
    start, startup = price.start, kept(price.start.seconds)
    pauses, restart, save = price.interruptions, _ZERO, _ZERO
    if pauses is not None:
        restart, save = kept(pauses.restart_seconds), kept(pauses.checkpoint_seconds)
    billed_startup = startup if start.billed else _ZERO
    alone = billed_startup + used_seconds
    more, billed = _ZERO, rounded(alone, rule)
    if price.maximum_lifetime_seconds is not None:
        lifetime = kept(price.maximum_lifetime_seconds)
        more, billed = branch(
            alone > lifetime,
            lambda: _further_starts(
                price.id, alone, lifetime, billed_startup + restart + save, rule
            ),
            lambda: (more, billed),
        )
    starts = 1 + more
    failures = kept(starts * start.failure_probability / (1 - start.failure_probability))
    return Schedule(
        used_seconds,
        starts * billed_startup + more * restart,
        billed,
        kept(used_seconds + (starts + failures) * startup + more * (restart + save)),
        starts,
        failures,
        saving_seconds=more * save,
    )


def _further_starts(
    price_id: str, alone: Decimal, lifetime: Decimal, pause: Decimal, rule: Billing
) -> tuple[Decimal, Decimal]:
    """How many starts follow the first, each with a pause, and the billed seconds of all.

    ``alone`` is how long the first would have to be for all work.
    """
    room = lifetime - pause
    if room <= 0:
        raise InputError(
            f"{price_id}: demanded a maximum_lifetime_seconds longer than a start, a restart "
            f"and a checkpoint, {pause} s; got {lifetime} s"
        )
    further = alone - lifetime
    more = ceiling(further / room)
    last = lifetime + further - more * room
    return more, more * rounded(lifetime, rule) + rounded(last, rule)


def rounded(used_seconds: Decimal, rule: Billing) -> Decimal:
    """As ``billed_seconds``, inside `exact_arithmetic`."""
    step, least = rule.increment_seconds, rule.minimum_seconds
    whole = steps_begun(used_seconds, step) * step if step else used_seconds
    return where(used_seconds <= least, least, whole) if least else whole
