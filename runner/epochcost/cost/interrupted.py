"""Schedules of interrupted jobs: what is expected of them, and between which ends most lie.

To be called inside `exact_arithmetic`.
"""

from __future__ import annotations

import math
from decimal import Decimal
from statistics import NormalDist

from epochcost.cost.money import kept
from epochcost.cost.spot import SpotJob, SpotTime, expected_time, spot_job
from epochcost.cost.spot_rounding import rounding_seconds
from epochcost.cost.starts import Schedule, rounded, uninterrupted
from epochcost.cost.tracing import branch, is_zero, known, largest
from epochcost.errors import InputError
from epochcost.specs.price import Price
from epochcost.specs.terms import Billing
from epochcost.units import MAX_DURATION_SECONDS

# From so many interruptions on, their sum is normal to all digits that anybody reads.
_MANY = 400
_BISECTIONS = 60
_ZERO = Decimal(0)


def schedule_of(price: Price, used_seconds: Decimal, rule: Billing) -> Schedule:
    """One run of a job under a rented plan: as it is expected, where it may be interrupted.

    Raises InputError where a lifetime leaves no time to work, and where the job is expected to take
    more than a century.
    """
    terms = price.interruptions
    if terms is None or is_zero(terms.rate_per_hour):
        return uninterrupted(price, used_seconds, rule)

    def interrupted() -> Schedule:
        job = spot_job(price, used_seconds)
        assert job is not None, "a rate of interruptions interrupts"
        return _schedule(price, job, _bearable(price, expected_time(job)), rule)

    # A symbol of a rate may come to stand for none.
    calm = terms.rate_per_hour <= 0
    return branch(calm, lambda: uninterrupted(price, used_seconds, rule), interrupted)


def schedule_at(
    price: Price, used_seconds: Decimal, rule: Billing, probability: float
) -> Schedule | None:
    """The run that so large a share of all runs does not exceed; None where none is interrupted.

    What interruptions take is scaled from its mean to a quantile of its sum: the number of
    interruptions is taken as Poisson, widened for those that follow each other, and what each takes
    as of its own mean and, for the place in the stretch where it falls, uniform. Raises
    InputError as ``schedule_of`` does.
    """
    job = spot_job(price, used_seconds)
    if job is None:
        return None
    time = _bearable(price, expected_time(job))
    share = Decimal(repr(_share_of_mean(job, time, probability)))
    scaled = SpotTime(
        time.running,
        time.work,
        time.saving,
        time.starting,
        time.rework * share,
        time.interruptions * share,
        time.forced,
    )
    return _schedule(price, job, scaled, rule, restarts=share)


def _schedule(
    price: Price, job: SpotJob, time: SpotTime, rule: Billing, restarts: Decimal = Decimal(1)
) -> Schedule:
    """The seconds of a job under a plan; ``restarts`` scales what is expected of them."""
    start, pauses = price.start, price.interruptions
    assert pauses is not None, "an interrupted job has interruptions"
    work, first = kept(time.work), kept(job.first_start)
    on_notice = job.interval is None
    saving = kept(time.saving * (restarts if on_notice else 1))
    rework = kept(time.rework)
    again = kept(largest(time.starting - first, _ZERO) * restarts)
    running = work + first + saving + rework + again
    shown = rounding_seconds(job, time, rule, free=pauses.interrupted_period_free)
    failures = time.starts * start.failure_probability / (1 - start.failure_probability)
    waiting = Decimal(0) if start.billed else time.starts * start.seconds
    calm = is_zero(time.interruptions) and known(job.ends_in_time)
    billed = rounded(running, rule) if calm else kept(largest(running + shown, _ZERO))
    return Schedule(
        work,
        first,
        billed,
        kept(running + waiting + failures * start.seconds),
        kept(time.starts),
        kept(failures),
        saving,
        rework,
        again,
    )


def _bearable(price: Price, time: SpotTime) -> SpotTime:
    if known(time.running > MAX_DURATION_SECONDS):
        raise InputError(
            f"{price.id}: demanded interruptions that let a job end within 100 years; got a job "
            f"of {time.work:.6g} s with {time.interruptions:.6g} interruptions expected; save more "
            "often (interruptions.checkpoint_interval_seconds)"
        )
    return time


def _share_of_mean(job: SpotJob, time: SpotTime, probability: float) -> float:
    """The quantile of what all interruptions take together, as a share of its mean."""
    count = float(time.interruptions)
    if count == 0:
        return 0.0
    each = float(
        (time.rework + max(Decimal(0), time.starting - job.first_start)) / time.interruptions
    )
    if job.interval is None:
        each += float(job.save)
    stretch = 0.0 if job.interval is None else float(job.interval + job.save)
    if each == 0:
        return 1.0
    spread = min(stretch / math.sqrt(12), each) / each
    if count > _MANY:
        deviation = math.sqrt(count * (1 + spread**2))
        share = max(0.0, 1 + NormalDist().inv_cdf(probability) * deviation / count)
    else:
        share = _quantile(count, spread, probability) / count
    return max(0.0, 1 + (share - 1) * math.sqrt(_dispersion(job))) if share else 0.0


def _dispersion(job: SpotJob) -> float:
    """The variance of the number of interruptions over its mean; 1 were it Poisson.

    A stretch is interrupted with chance p, and then until a start and the stretch are left alone,
    with chance s each time: the number has the mean p / s and the variance p (2 - s - p) / s^2.
    """
    stretch = Decimal(0) if job.interval is None else job.interval + job.save
    stretch = min(stretch, job.work)
    alone = (-job.rate * (job.later_start + stretch)).exp()
    return float((2 - alone - (1 - (-job.rate * stretch).exp())) / alone)


def _quantile(count: float, spread: float, probability: float) -> float:
    """The quantile of a Poisson number's sum of positive losses of mean 1, by bisection."""
    if math.exp(-count) >= probability:
        return 0.0
    low, high = 0.0, count + 12 * math.sqrt(count) + 12
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if _chance_below(middle, count, spread) < probability:
            low = middle
        else:
            high = middle
    return high


def _chance_below(sum_of_losses: float, count: float, spread: float) -> float:
    chance = weight = math.exp(-count)
    for number in range(1, int(count + 12 * math.sqrt(count) + 24)):
        weight *= count / number
        deviation = max(spread * math.sqrt(number), 1e-9)
        chance += weight * NormalDist(number, deviation).cdf(sum_of_losses)
    return chance
