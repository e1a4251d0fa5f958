"""A job's starts and billed time, with interruptions; call these within `exact_arithmetic`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal

from epochcost.cost.free_starts import free_starts
from epochcost.cost.money import quantized
from epochcost.cost.spot import (
    SpotJob,
    SpotTime,
    expected_time,
    round_up,
    rounding_seconds,
    share_of_mean_loss,
    spot_job,
)
from epochcost.cost.tracing import branch, ceiling, is_certain, is_zero, maximum
from epochcost.errors import InputError
from epochcost.specs.price import Price
from epochcost.specs.terms import Billing, Start
from epochcost.units import MAX_DURATION_SECONDS

_ZERO = Decimal(0)


@dataclass(frozen=True, slots=True)
class Schedule:
    """The machine time that a job takes, in seconds, with its numbers of starts and failed starts.

    ``used_seconds`` is for work, ``saving_seconds`` for checkpoints, and ``rework_seconds`` for
    work that is repeated after interruptions. If interruptions are expected, ``starting_seconds``
    is for the first start and ``restarting_seconds`` for all others. ``free_seconds`` are not
    billed, because the provider took the machine back early. ``billed_seconds`` is rounded.
    ``elapsed_seconds`` includes free time, unbilled start-ups and failed starts.
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
    free_seconds: Decimal = Decimal(0)


def shared_schedule(price: Price, used_seconds: Decimal, _rule: Billing) -> Schedule:
    """The schedule of a part of a longer job, such as an epoch: no start and no rounding.

    Raises InputError for a plan without hourly charge.
    """
    if not price.is_hourly:
        raise InputError(f"{price.id}: expected a price per hour for a share, found none")
    return Schedule(used_seconds, Decimal(0), used_seconds, used_seconds, starts=Decimal(0))


def uninterrupted_schedule(price: Price, used_seconds: Decimal, rule: Billing) -> Schedule:
    """The schedule of a job without interruptions.

    If the plan limits a machine's lifetime, the job runs on the fewest possible machines in
    succession.
    """
    start, startup = price.start, quantized(price.start.seconds)
    pauses, restart, save = price.interruptions, _ZERO, _ZERO
    if pauses is not None:
        restart, save = quantized(pauses.restart_seconds), quantized(pauses.checkpoint_seconds)
    billed_startup = startup if start.billed else _ZERO
    alone = billed_startup + used_seconds
    more, billed = _ZERO, round_up(alone, rule)
    if price.maximum_lifetime_seconds is not None:
        lifetime = quantized(price.maximum_lifetime_seconds)
        # The machines' times are rounded separately.
        room = lifetime - billed_startup - restart - save
        more = maximum(_ZERO, ceiling((alone - lifetime) / room))
        billed = more * round_up(lifetime, rule) + round_up(alone - more * room, rule)
    starts = 1 + more
    failures = quantized(_expected_failures(start, starts))
    return Schedule(
        used_seconds,
        starts * billed_startup + more * restart,
        billed,
        quantized(used_seconds + (starts + failures) * startup + more * (restart + save)),
        starts,
        failures,
        saving_seconds=more * save,
    )


def _expected_failures(start: Start, successes: Decimal) -> Decimal:
    # If a start fails with probability p, p / (1 - p) failures are expected for each success.
    return successes * start.failure_probability / (1 - start.failure_probability)


def expected_schedule(price: Price, used_seconds: Decimal, rule: Billing) -> Schedule:
    """The schedule of a job under a rented plan, in expected values if it may be interrupted.

    Raises InputError if the expected time exceeds 100 years.
    """
    terms, job = price.interruptions, spot_job(price, used_seconds)
    if terms is None or job is None:
        return uninterrupted_schedule(price, used_seconds, rule)
    # If the rate is a symbol, its value may later be 0.
    return branch(
        terms.rate_per_hour <= 0,
        lambda: uninterrupted_schedule(price, used_seconds, rule),
        lambda: _spot_schedule(price, job, _bearable(price, expected_time(job)), rule),
    )


def schedule_quantile(
    price: Price, used_seconds: Decimal, rule: Billing, probability: float
) -> Schedule:
    """The schedule of a job if its time lost to interruptions is a quantile instead of the mean.

    With a ``probability`` of 0.95, 95 % of the simulated runs lose less time. Raises InputError
    like `expected_schedule`.
    """
    job = spot_job(price, used_seconds)
    if job is None:
        return uninterrupted_schedule(price, used_seconds, rule)
    time = _bearable(price, expected_time(job))
    share = share_of_mean_loss(job, time.interruptions, probability)
    scaled = replace(time, rework=time.rework * share, interruptions=time.interruptions * share)
    return _spot_schedule(price, job, scaled, rule, restart_factor=share)


def _spot_schedule(
    price: Price, job: SpotJob, time: SpotTime, rule: Billing, restart_factor: Decimal = Decimal(1)
) -> Schedule:
    """The schedule of a job that may be interrupted, from its times in ``time``.

    ``restart_factor`` is 1 for expected times. For a quantile of the time lost to interruptions, it
    is the quantile ÷ the mean, and the caller has multiplied the rework and interruptions in
    ``time`` by it. This function multiplies the other times that depend on interruptions by it.
    """
    start = price.start
    work, first = quantized(time.work), quantized(job.first_start)
    on_notice = job.interval is None
    saving = quantized(time.saving * (restart_factor if on_notice else 1))
    rework = quantized(time.rework)
    again = quantized(maximum(time.starting - first, _ZERO) * restart_factor)
    running = work + first + saving + rework + again
    free = free_starts(job, time)
    billed_starts = time.interruptions - free.number * restart_factor
    rounding = rounding_seconds(job, replace(time, interruptions=billed_starts), rule)
    free_seconds = quantized(free.seconds * restart_factor)
    failures = _expected_failures(start, time.starts)
    waiting = Decimal(0) if start.billed else time.starts * start.seconds
    calm = is_zero(time.interruptions) and is_zero(time.forced)
    billed = round_up(running, rule) if calm else quantized(running + rounding)
    billed -= free_seconds
    return Schedule(
        work,
        first,
        billed,
        quantized(running + waiting + failures * start.seconds),
        quantized(time.starts),
        quantized(failures),
        saving,
        rework,
        again,
        free_seconds,
    )


def _bearable(price: Price, time: SpotTime) -> SpotTime:
    if is_certain(time.running > MAX_DURATION_SECONDS):
        raise InputError(
            f"{price.id}: expected interruptions that let a job end within 100 years, got a job "
            f"of {time.work:.6g} s with {time.interruptions:.6g} interruptions expected; save more "
            "often (interruptions.checkpoint_interval_seconds)"
        )
    return time
