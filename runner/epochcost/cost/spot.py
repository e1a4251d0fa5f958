"""Jobs on machines that the provider takes back: expected time, saves, rework and restarts.

Interruptions come at random at a constant rate while a machine runs, so the time to the next one
is exponential. Work since the last save is lost and done again; how often to save is Daly's
optimum. What the time costs is left to `cost.bill`, how starts are rounded up to `cost.rounding`;
`cost.simulation` plays the same jobs out at random, as the second way to every figure here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal

from epochcost.cost.money import exact_arithmetic, quantized
from epochcost.cost.tracing import (
    branch,
    ceiling,
    expm1,
    exponential,
    floor,
    indexed_power_sum,
    is_certain,
    is_zero,
    maximum,
    minimum,
    one_minus_exp,
    round_half_even,
    square_root,
    where,
)
from epochcost.errors import InputError
from epochcost.specs.price import Price
from epochcost.specs.terms import Interruptions
from epochcost.units import SECONDS_PER_HOUR

_ZERO, _ONE = Decimal(0), Decimal(1)
# At which a plan is shown of which nobody says how often it is interrupted, per hour.
SHOWN_RATES = (Decimal(0), Decimal("0.05"), Decimal("0.2"))
# A model of a few gigabytes on a common disk, and a machine that is there again.
_ASSUMED_SAVE_SECONDS, _ASSUMED_RESTART_SECONDS = Decimal(30), Decimal(300)


def daly_interval_seconds(save_seconds: Decimal, seconds_between: Decimal) -> Decimal:
    """The work between saves by the higher-order optimum, good where saves are long, too.

    J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps",
    Future Generation Computer Systems 22 (3), 2006, pp. 303-312, equation 37: with s the time of
    a save and M the mean time between interruptions,
    sqrt(2 s M) (1 + sqrt(s / 2M) / 3 + (s / 2M) / 9) - s, and M from s = 2 M on.
    """
    with exact_arithmetic():
        share = save_seconds / (2 * seconds_between)
        first = square_root(2 * save_seconds * seconds_between)
        higher = first * (1 + square_root(share) / 3 + share / 9) - save_seconds
        return where(2 * seconds_between <= save_seconds, seconds_between, higher)


@dataclass(frozen=True, slots=True)
class SpotJob:
    """A job on a machine that may be taken back: all in seconds, interruptions per second.

    ``first_start`` is the billed time until work begins, ``later_start`` that of every start after
    it, with the restart. ``interval`` is the work between saves; None: nothing is ever lost,
    because the notice is long enough to save in, or because saving takes no time. ``lifetime`` is
    when a start ends at the latest; the job stops at the last save that fits.
    """

    work: Decimal
    rate: Decimal
    first_start: Decimal
    later_start: Decimal
    save: Decimal
    interval: Decimal | None
    lifetime: Decimal | None = None

    @property
    def segments(self) -> Decimal:
        """How many stretches of work there are, each but the last with a save at its end."""
        if self.interval is None:
            return _ONE
        return maximum(ceiling(self.work / self.interval), _ONE)

    @property
    def undisturbed(self) -> Decimal:
        """The time without any interruption."""
        return self.first_start + self.work + (self.segments - 1) * self.save

    @property
    def longest_restart(self) -> Decimal:
        """The time from a restart to the job's end where nothing is saved yet."""
        return self.later_start + self.work + (self.segments - 1) * self.save

    @property
    def ends_in_time(self) -> bool:
        """Whether the lifetime cannot end the job, even if it is interrupted at once."""
        return self.lifetime is None or self.longest_restart <= self.lifetime

    @property
    def longest(self) -> Decimal:
        """The longest that one start lasts: to the job's end, or to the last save that fits."""
        lifetime = self.lifetime
        if lifetime is None:
            return self.undisturbed
        return branch(
            self.ends_in_time, lambda: self.undisturbed, lambda: self._last_save_within(lifetime)
        )

    def _last_save_within(self, lifetime: Decimal) -> Decimal:
        if self.interval is None:
            return lifetime
        stretch, room = self.interval + self.save, lifetime - self.later_start
        # Kept: where the interval divides the lifetime, a last digit must not change its stretches.
        return quantized(lifetime - (room - floor(quantized(room / stretch)) * stretch))


@dataclass(frozen=True, slots=True)
class SpotTime:
    """What is expected of a job; seconds of a running machine, and numbers of events.

    ``running`` is ``work`` + ``saving`` + ``starting`` + ``rework``. ``forced`` are the ends of
    starts that reach their lifetime, and no interruptions.
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
        """The first start, and one after each end that is not the job's."""
        return 1 + self.interruptions + self.forced


def can_be_interrupted(price: Price) -> bool:
    """Whether ``interrupted_at`` fits: a spot plan of unknown rate with time to work in a start."""
    first = price.start.seconds if price.start.billed else _ZERO
    idle = first + _ASSUMED_RESTART_SECONDS + _ASSUMED_SAVE_SECONDS
    lifetime = price.maximum_lifetime_seconds
    return (
        price.plan == "spot"
        and price.interruptions is None
        and (lifetime is None or lifetime > idle)
    )


def interrupted_at(price: Price, rate_per_hour: Decimal) -> Price:
    """The plan, interrupted so often: saves of 30 s by Daly's optimum and 5 min to go on."""
    terms = Interruptions(
        rate_per_hour=rate_per_hour,
        checkpoint_seconds=_ASSUMED_SAVE_SECONDS,
        restart_seconds=_ASSUMED_RESTART_SECONDS,
    )
    return price.model_copy(update={"interruptions": terms})


def spot_job(price: Price, work: Decimal) -> SpotJob | None:
    """The job that so many seconds of work are under a plan; None where nothing interrupts it.

    To be called inside `exact_arithmetic`. Raises InputError where a lifetime leaves no time to
    work between a start and a save.
    """
    terms = price.interruptions
    if terms is None or is_zero(terms.rate_per_hour):
        return None
    rate = terms.rate_per_hour / SECONDS_PER_HOUR
    first = price.start.seconds if price.start.billed else Decimal(0)
    interval = _interval(terms, rate)
    job = SpotJob(
        work,
        rate,
        first,
        first + terms.restart_seconds,
        terms.checkpoint_seconds,
        interval,
        price.maximum_lifetime_seconds,
    )
    return job if is_certain(job.ends_in_time) else _within_lifetime(job, price, terms)


def _interval(terms: Interruptions, rate: Decimal) -> Decimal | None:
    """The interval that is declared, else Daly's; None where the notice is enough to save in."""
    if 0 < terms.checkpoint_seconds <= terms.notice_seconds:
        return None
    if terms.checkpoint_interval_seconds is not None:
        return terms.checkpoint_interval_seconds
    if terms.checkpoint_seconds == 0:
        return None
    return daly_interval_seconds(terms.checkpoint_seconds, 1 / rate)


def _within_lifetime(job: SpotJob, price: Price, terms: Interruptions) -> SpotJob:
    """The job with an interval that fits a lifetime; the optimum is shortened to divide it."""
    assert job.lifetime is not None, "a job that a lifetime ends has one"
    room = job.lifetime - job.later_start
    if room <= job.save:
        raise InputError(
            f"{price.id}: expected a maximum_lifetime_seconds longer than a start, a restart and "
            f"a checkpoint, {job.later_start + job.save} s, got {job.lifetime} s"
        )
    interval = job.interval
    if interval is None:
        return job
    stretches = room / (interval + job.save)
    shorter = room / maximum(ceiling(stretches), _ONE) - job.save
    fitting = where(shorter > 0, shorter, interval)
    if terms.checkpoint_interval_seconds is not None:
        fitting = where(stretches >= 1, interval, fitting)
    return replace(job, interval=where(job.ends_in_time, interval, fitting))


def expected_time(job: SpotJob) -> SpotTime:
    """What a job is expected to take, in closed form; to be called inside `exact_arithmetic`.

    Exact where no lifetime ends the job. There, with rate r, later start B, first start S and
    stretches of length L (work and save), the running time is
    exp(r B) / r x (sum of (exp(r L) - 1) + 1 - exp(-r S)): Daly's equation 20 for each stretch
    (see `daly_interval_seconds`), as a machine may be taken back while it starts, too; r times it
    are the interruptions. With a lifetime it is the long-run mean of running time for work saved
    (renewal-reward theorem), exact but for less than one start at the beginning and at the end.
    """
    calm = _time_saved_on_notice if job.interval is None else _time_of_stretches
    return branch(job.ends_in_time, lambda: calm(job), lambda: _time_of_lives(job))


def _time_of_stretches(job: SpotJob) -> SpotTime:
    assert job.interval is not None, "a job in stretches has an interval"
    rate, saves = job.rate, job.segments - 1
    last = job.work - saves * job.interval
    stretches = saves * expm1(rate * (job.interval + job.save)) + expm1(rate * last)
    begun = one_minus_exp(rate * job.first_start)
    running = exponential(rate * job.later_start) * (stretches + begun) / rate
    starting = running * one_minus_exp(rate * job.later_start) + begun / rate
    saving = saves * job.save
    rework = running - job.work - saving - starting
    return SpotTime(running, job.work, saving, starting, maximum(rework, _ZERO), rate * running)


def _time_saved_on_notice(job: SpotJob) -> SpotTime:
    """Every interruption of work costs a save and what it takes to go on, and no work."""
    rate = job.rate
    begun = one_minus_exp(rate * job.first_start) / rate
    noticed = rate * exponential(rate * job.later_start) * (job.work + begun)
    starting = noticed * one_minus_exp(rate * job.later_start) / rate + begun
    saving = rate * job.work * job.save
    running = job.work + saving + starting
    return SpotTime(running, job.work, saving, starting, Decimal(0), noticed)


@dataclass(frozen=True, slots=True)
class _Life:
    """One start of a job without end, by its lifetime: means of its parts, in seconds.

    ``saved`` is the work that stays, ``excess`` the mean of the work by which the job's last life
    would go beyond its end. ``worked`` is the time after the start but for the saves.
    """

    saved: Decimal
    excess: Decimal
    saving: Decimal
    worked: Decimal


def _time_of_lives(job: SpotJob) -> SpotTime:
    """By renewal theory: lives of which each saves so much work, the last beyond the job's end."""
    assert job.lifetime is not None, "a job of several lives has a lifetime"
    life = _life_on_notice(job) if job.interval is None else _life_of_stretches(job, job.interval)
    rate, lives = job.rate, job.work / life.saved
    starts = maximum(lives + life.excess / life.saved, _ONE)
    begun = one_minus_exp(rate * job.later_start) / rate
    starting = (starts - 1) * begun + one_minus_exp(rate * job.first_start) / rate
    saving = maximum(lives * life.saving - job.save, _ZERO)
    rework = maximum(lives * life.worked - job.work, _ZERO)
    running = job.work + saving + starting + rework
    endangered = running - saving if job.interval is None else running
    interruptions = minimum(rate * endangered, starts - 1)
    forced = starts - 1 - interruptions
    return SpotTime(running, job.work, saving, starting, rework, interruptions, forced)


def _life_on_notice(job: SpotJob) -> _Life:
    """Work until the notice or the last moment to save: min(X, w), X exponential of rate r.

    Its mean is (1 - exp(-r w)) / r, half its mean square (1 - exp(-r w)) / r^2 - w exp(-r w) / r.
    """
    assert job.lifetime is not None, "a life has a lifetime"
    rate, reached = job.rate, exponential(-job.rate * job.later_start)
    longest = job.lifetime - job.later_start - job.save
    mean = one_minus_exp(rate * longest) / rate
    half_square = mean / rate - longest * exponential(-rate * longest) / rate
    worked = reached * mean
    return _Life(worked, half_square / mean, reached * job.save, worked)


def _life_of_stretches(job: SpotJob, interval: Decimal) -> _Life:
    """K stretches are saved, at most m: P(K >= j) = exp(-r (B + j L)).

    The last life exceeds the job's end by E[K (K - 1)] / 2 E[K] stretches.
    """
    rate, stretch = job.rate, interval + job.save
    reached, stays = exponential(-rate * job.later_start), exponential(-rate * stretch)
    most = round_half_even((job.longest - job.later_start) / stretch)
    ended, gone = one_minus_exp(most * rate * stretch), one_minus_exp(rate * stretch)
    mean = reached * stays * ended / gone
    half_pairs = reached * indexed_power_sum(most, stays, gone)
    saving = mean * job.save
    worked = reached * ended / rate - saving
    return _Life(mean * interval, half_pairs / mean * interval, saving, worked)
