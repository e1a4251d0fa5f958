"""Expected time, quantiles of the time, and billed time on machines that may be taken back.

Interruptions come at a constant rate while a machine runs, and work since the last checkpoint is
repeated. Call these functions within `exact_arithmetic`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache

from epochcost.cost.money import exact_arithmetic
from epochcost.cost.tracing import (
    branch,
    ceil_divide,
    ceiling,
    expm1,
    exponential,
    is_zero,
    maximum,
    minimum,
    one_minus_exp,
    square_root,
    where,
)
from epochcost.specs.price import Price
from epochcost.specs.terms import Billing, Interruptions
from epochcost.units import SECONDS_PER_HOUR

_ZERO, _ONE = Decimal(0), Decimal(1)
# If a plan's rate of interruptions is unknown, costs are shown for these rates per hour.
SHOWN_RATES = (Decimal(0), Decimal("0.05"), Decimal("0.2"))
# Assumed for a checkpoint of a few gigabytes on a common disk, and for a restart on a new machine.
_ASSUMED_SAVE_SECONDS, _ASSUMED_RESTART_SECONDS = Decimal(30), Decimal(300)
_SIMULATED_RUNS, _SEED = 1000, 2006
# A simulated run has about this number of interruptions; of a longer job, only a part is simulated.
_SIMULATED_INTERRUPTIONS = 50


def daly_interval_seconds(save_seconds: Decimal, seconds_between: Decimal) -> Decimal:
    """The optimal seconds of work between checkpoints, even if a checkpoint takes long.

    ``seconds_between`` is the mean time between interruptions. Source: J. T. Daly, "A higher order
    estimate of the optimum checkpoint interval for restart dumps", Future Generation Computer
    Systems 22 (3), 2006, equation 37.
    """
    with exact_arithmetic():
        share = save_seconds / (2 * seconds_between)
        first = square_root(2 * save_seconds * seconds_between)
        higher = first * (1 + square_root(share) / 3 + share / 9) - save_seconds
        return where(2 * seconds_between <= save_seconds, seconds_between, higher)


@dataclass(frozen=True, slots=True)
class SpotJob:
    """A job on a machine that the provider may take back; all times are in seconds.

    ``rate`` is the number of interruptions per second. ``first_start`` and ``later_start`` are the
    billed times before the first and each later machine works. ``save`` is the time of a
    checkpoint. ``interval`` is the work between checkpoints; None if no work is lost, because a
    checkpoint is written on notice or takes no time. ``lifetime`` is the longest time that a
    machine may run. A machine is not billed if it is taken back within ``free`` seconds.
    """

    work: Decimal
    rate: Decimal
    first_start: Decimal
    later_start: Decimal
    save: Decimal
    interval: Decimal | None
    lifetime: Decimal | None = None
    free: Decimal = _ZERO

    @property
    def saves(self) -> Decimal:
        """Number of checkpoints if there are no interruptions."""
        if self.interval is None:
            return _ZERO
        return maximum(ceiling(self.work / self.interval), _ONE) - 1

    @property
    def undisturbed(self) -> Decimal:
        """Seconds of the job if there are no interruptions."""
        return self.first_start + self.work + self.saves * self.save


@dataclass(frozen=True, slots=True)
class SpotTime:
    """Expected seconds that a job's machines run, and expected numbers of interruptions.

    ``running`` is ``work`` + ``saving`` + ``starting`` + ``rework``. ``forced`` is the number of
    machines that reach their maximum lifetime; ``interruptions`` leaves them out.
    """

    running: Decimal
    work: Decimal
    saving: Decimal
    starting: Decimal
    rework: Decimal
    interruptions: Decimal
    forced: Decimal = Decimal(0)

    @property
    def starts(self) -> Decimal:
        """Expected number of starts: the first, and one after each interruption or forced end."""
        return 1 + self.interruptions + self.forced


def can_be_interrupted(price: Price) -> bool:
    """Whether a plan's costs need assumed rates of interruption, as its spec states none.

    False if a machine's lifetime leaves no time to work besides a start, a restart (assumed to take
    5 min) and a checkpoint (30 s).
    """
    first = price.start.seconds if price.start.billed else _ZERO
    idle = first + _ASSUMED_RESTART_SECONDS + _ASSUMED_SAVE_SECONDS
    lifetime = price.maximum_lifetime_seconds
    return price.interruptions_unknown and (lifetime is None or lifetime > idle)


def interrupted_at(price: Price, rate_per_hour: Decimal) -> Price:
    """A copy of the plan with this rate; checkpoints are assumed to take 30 s, restarts 5 min."""
    terms = Interruptions(
        rate_per_hour=rate_per_hour,
        checkpoint_seconds=_ASSUMED_SAVE_SECONDS,
        restart_seconds=_ASSUMED_RESTART_SECONDS,
    )
    return price.model_copy(update={"interruptions": terms})


def spot_job(price: Price, work: Decimal) -> SpotJob | None:
    """A job of ``work`` seconds under a plan; None if the plan has no interruptions."""
    terms, lifetime = price.interruptions, price.maximum_lifetime_seconds
    if terms is None or is_zero(terms.rate_per_hour):
        return None
    rate = terms.rate_per_hour / SECONDS_PER_HOUR
    first = price.start.seconds if price.start.billed else _ZERO
    later, save = first + terms.restart_seconds, terms.checkpoint_seconds
    interval = _checkpoint_interval(terms, rate)
    if lifetime is not None and interval is not None:
        interval = minimum(interval, lifetime - later - save)
    free = price.free_if_taken_back_seconds
    return SpotJob(work, rate, first, later, save, interval, lifetime, free)


def _checkpoint_interval(terms: Interruptions, rate_per_second: Decimal) -> Decimal | None:
    """Seconds of work between checkpoints; None if an interruption loses no work."""
    if 0 < terms.checkpoint_seconds <= terms.notice_seconds:
        return None
    if terms.checkpoint_interval_seconds is not None:
        return terms.checkpoint_interval_seconds
    if terms.checkpoint_seconds == 0:
        return None
    return daly_interval_seconds(terms.checkpoint_seconds, 1 / rate_per_second)


def expected_time(job: SpotJob) -> SpotTime:
    """The expected time of a job with interruptions, by a closed formula.

    The formula is equation 20 of Daly (2006, see `daly_interval_seconds`), extended to
    interruptions during start-up. It is approximate if machines have a maximum lifetime.
    """
    time = _time_without_rework(job) if job.interval is None else _time_of_stretches(job)
    lifetime = job.lifetime
    if lifetime is None:
        return time
    longest = job.undisturbed + job.later_start - job.first_start
    return branch(longest <= lifetime, lambda: time, lambda: _with_forced_ends(job, time, lifetime))


def _time_of_stretches(job: SpotJob) -> SpotTime:
    assert job.interval is not None, "a job in stretches has an interval"
    rate, saves = job.rate, job.saves
    last = job.work - saves * job.interval
    stretches = saves * expm1(rate * (job.interval + job.save)) + expm1(rate * last)
    begun = one_minus_exp(rate * job.first_start)
    # With first start S, later starts B and stretches L (work and a checkpoint), Daly's equation 20
    # gives exp(r B) / r x (sum of (exp(r L) - 1) + 1 - exp(-r S)).
    running = exponential(rate * job.later_start) * (stretches + begun) / rate
    starting = running * one_minus_exp(rate * job.later_start) + begun / rate
    saving = saves * job.save
    rework = running - job.work - saving - starting
    return SpotTime(running, job.work, saving, starting, maximum(rework, _ZERO), rate * running)


def _time_without_rework(job: SpotJob) -> SpotTime:
    """The expected times of a job that loses no work: it saves when it gets notice of an end."""
    rate = job.rate
    begun = one_minus_exp(rate * job.first_start) / rate
    noticed = rate * exponential(rate * job.later_start) * (job.work + begun)
    starting = noticed * one_minus_exp(rate * job.later_start) / rate + begun
    saving = rate * job.work * job.save
    running = job.work + saving + starting
    return SpotTime(running, job.work, saving, starting, _ZERO, noticed)


def _with_forced_ends(job: SpotJob, time: SpotTime, lifetime: Decimal) -> SpotTime:
    # With the rate r, r / (exp(r ``lifetime``) - 1) runs per second of running reach the end of the
    # lifetime (renewal-reward theorem).
    often = job.rate / expm1(job.rate * lifetime)
    running = time.running / (1 - often * (job.later_start + job.save))
    forced = often * running
    return replace(
        time,
        running=running,
        saving=time.saving + forced * job.save,
        starting=time.starting + forced * job.later_start,
        forced=forced,
    )


def round_up(used_seconds: Decimal, rule: Billing) -> Decimal:
    """Billed seconds of a machine's run: the minimum, or a longer time rounded up to increments.

    An increment of 0 rounds nothing. Rounding billed seconds again does not change them.
    """
    step, least = rule.increment_seconds, rule.minimum_seconds
    billed = ceil_divide(used_seconds, step) * step if step else used_seconds
    return where(used_seconds <= least, least, billed) if least else billed


def rounding_seconds(job: SpotJob, time: SpotTime, rule: Billing) -> Decimal:
    """Expected seconds that rounding adds to the running time of a job.

    Each machine's time is rounded separately. After an interruption, the last machine may end
    anywhere in a billing increment, so rounding adds half an increment on average.
    """
    if rule.increment_seconds == 0 and rule.minimum_seconds == 0:
        return _ZERO
    added = time.interruptions * _rounding_of_interrupted_start(job, rule)
    if job.lifetime is not None:
        added += time.forced * (round_up(job.lifetime, rule) - job.lifetime)
    calm = exponential(-job.rate * job.undisturbed)
    last = round_up(job.undisturbed, rule) - job.undisturbed
    return added + calm * last + (1 - calm) * rule.increment_seconds / 2


def _rounding_of_interrupted_start(job: SpotJob, rule: Billing) -> Decimal:
    """Mean seconds that rounding adds to the billed time of an interrupted machine.

    The mean leaves out the machines that are free: taken back within ``job.free`` seconds.
    """
    rate, step, least = job.rate, rule.increment_seconds, rule.minimum_seconds
    least = least if least > job.free else _ZERO
    # With the rate r and the increment h, rounding increases the mean time of a start from 1/r to
    # h / (1 - exp(-r h)).
    stepped = step / one_minus_exp(rate * step) - 1 / rate if step else _ZERO
    if not least:
        return stepped
    # An interrupted start ends before the job would. The time beyond the minimum or the free time
    # is again exponentially distributed.
    short = minimum(least, job.undisturbed)
    ended = exponential(-rate * short)
    below = (least - 1 / rate) * one_minus_exp(rate * short) + short * ended
    beyond = (ended - exponential(-rate * job.undisturbed)) * stepped
    return (below + beyond) / one_minus_exp(rate * job.undisturbed)


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """The result of simulating a job once; ``saving`` is the seconds of all checkpoints.

    ``starts`` has, for each machine, the seconds that it ran, and whether it was interrupted.
    """

    starts: tuple[tuple[float, bool], ...]
    saving: float

    @property
    def running(self) -> float:
        """The sum of the seconds that the job's machines ran."""
        return math.fsum(seconds for seconds, _ in self.starts)


def simulate(job: SpotJob, runs: int, seed: int) -> list[SimulatedRun]:
    """Simulate a job ``runs`` times, machine by machine; equal seeds give equal results."""
    chance = random.Random(seed)  # noqa: S311 - repeatable, no secret
    rate = float(job.rate)
    use = _use_saved_on_notice(job) if job.interval is None else _use_in_stretches(job)
    first, later, work = float(job.first_start), float(job.later_start), float(job.work)
    played = []
    for _ in range(runs):
        begin, remaining, saving = first, work, 0.0
        starts: list[tuple[float, bool]] = []
        while remaining > 0:
            end, progress, saved, interrupted = use(begin, remaining, chance.expovariate(rate))
            starts.append((end, interrupted))
            begin, remaining, saving = later, remaining - progress, saving + saved
        played.append(SimulatedRun(tuple(starts), saving))
    return played


# Simulates a start. Arguments: the second at which work begins, the remaining work, and the second
# of the interruption. Result: the second at which the start ends, the saved work, the seconds of
# checkpoints, and whether the start was interrupted.
_Use = Callable[[float, float, float], tuple[float, float, float, bool]]


def _use_in_stretches(job: SpotJob) -> _Use:
    interval, save = float(job.interval or 0), float(job.save)
    lifetime = math.inf if job.lifetime is None else float(job.lifetime)

    def use(begin: float, remaining: float, until: float) -> tuple[float, float, float, bool]:
        saves = math.ceil(remaining / interval * (1 - 1e-12)) - 1
        finish = begin + remaining + saves * save
        if finish <= min(until, lifetime):
            return finish, remaining, saves * save, False
        saves = max(0, int((min(until, lifetime) - begin) / (interval + save)))
        if until < lifetime:
            return until, saves * interval, saves * save, True
        rest = max(0.0, lifetime - begin - saves * (interval + save) - save)
        return lifetime, saves * interval + rest, (saves + 1) * save, False

    return use


def _use_saved_on_notice(job: SpotJob) -> _Use:
    save = float(job.save)
    last_save = math.inf if job.lifetime is None else float(job.lifetime) - save

    def use(begin: float, remaining: float, until: float) -> tuple[float, float, float, bool]:
        end = min(until, last_save)
        if begin + remaining <= min(until, last_save + save):
            return begin + remaining, remaining, 0.0, False
        if end <= begin:
            return end, 0.0, 0.0, True
        return end + save, end - begin, save, until <= last_save

    return use


def share_of_mean_loss(job: SpotJob, interruptions: Decimal, probability: float) -> Decimal:
    """Estimate a quantile of the time lost to interruptions, divided by the mean lost time.

    With a ``probability`` of 0.95, 95 % of the runs of ``job`` lose less time than this quantile.
    ``interruptions`` is the expected number in a run. The estimate is from simulated runs.
    """
    # One of n equal parts is simulated. The relative deviation of the job is that of the part / √n.
    parts = math.ceil(interruptions / _SIMULATED_INTERRUPTIONS)
    if job.interval is not None:
        parts = min(parts, int(job.saves) + 1)
    if interruptions > 4 * parts * _SIMULATED_INTERRUPTIONS:
        # Very many interruptions: the lost time counts as exponentially distributed.
        deviation = -math.log1p(-probability) - 1
    else:
        losses = _sorted_losses(replace(job, work=job.work / parts))
        mean = math.fsum(losses) / len(losses)
        deviation = losses[int(probability * len(losses))] / mean - 1 if mean > 0 else -1.0
    return Decimal(repr(max(0.0, 1 + deviation / math.sqrt(parts))))


@lru_cache(maxsize=64)
def _sorted_losses(job: SpotJob) -> tuple[float, ...]:
    calm = float(job.undisturbed)
    return tuple(sorted(run.running - calm for run in simulate(job, _SIMULATED_RUNS, _SEED)))
