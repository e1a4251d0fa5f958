"""Jobs on machines that the provider takes back: expected time, saves, rework and restarts.

Interruptions come at random at a constant rate while a machine runs, so the time to the next one
is exponential. Work since the last save is lost and done again. What the time costs is left to
`cost.bill`, how starts are rounded up to `cost.spot_rounding`; `cost.simulation` plays the same
jobs out at random, as the second way to every figure here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from epochcost.cost.checkpoints import daly_interval_seconds
from epochcost.cost.money import exponential, kept
from epochcost.errors import InputError
from epochcost.specs.price import Price
from epochcost.specs.terms import Interruptions
from epochcost.units import SECONDS_PER_HOUR

# Below it 1 - exp(-x) is x to 30 digits, and would lose the digits of CONTEXT otherwise.
_TINY = Decimal("1e-30")


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
            return Decimal(1)
        return max(Decimal(1), (self.work / self.interval).to_integral_value(ROUND_CEILING))

    @property
    def undisturbed(self) -> Decimal:
        """The time without any interruption."""
        return self.first_start + self.work + (self.segments - 1) * self.save

    @property
    def ends_in_time(self) -> bool:
        """Whether the lifetime cannot end the job, even if it is interrupted at once."""
        longest = self.undisturbed - self.first_start + self.later_start
        return self.lifetime is None or longest <= self.lifetime

    @property
    def longest(self) -> Decimal:
        """The longest that one start lasts: to the job's end, or to the last save that fits."""
        if self.ends_in_time or self.lifetime is None:
            return self.undisturbed
        if self.interval is None:
            return self.lifetime
        stretch = self.interval + self.save
        # Kept: where the interval divides the lifetime, a last digit must not change its stretches.
        stretches = kept((self.lifetime - self.later_start) / stretch)
        return kept(self.later_start + stretches.to_integral_value(ROUND_FLOOR) * stretch)


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


def spot_job(price: Price, work: Decimal) -> SpotJob | None:
    """The job that so many seconds of work are under a plan; None where nothing interrupts it.

    To be called inside `exact_arithmetic`. Raises InputError where a lifetime leaves no time to
    work between a start and a save.
    """
    terms = price.interruptions
    if terms is None or terms.rate_per_hour == 0:
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
    return job if job.ends_in_time else _within_lifetime(job, price, terms)


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
            f"{price.id}: demanded a maximum_lifetime_seconds longer than a start, a restart and "
            f"a checkpoint, {job.later_start + job.save} s; got {job.lifetime} s"
        )
    if job.interval is None:
        return job
    stretches = room / (job.interval + job.save)
    if terms.checkpoint_interval_seconds is not None and stretches >= 1:
        return job
    fitting = max(Decimal(1), stretches.to_integral_value(ROUND_CEILING))
    interval = room / fitting - job.save
    return replace(job, interval=interval if interval > 0 else job.interval)


def expected_time(job: SpotJob) -> SpotTime:
    """What a job is expected to take, in closed form; to be called inside `exact_arithmetic`.

    Exact where no lifetime ends the job. There, with rate r, later start B, first start S and
    stretches of length L (work and save), the running time is
    exp(r B) / r x (sum of (exp(r L) - 1) + 1 - exp(-r S)): Daly's equation 20 for each stretch
    (see `daly_interval_seconds`), as a machine may be taken back while it starts, too; r times it
    are the interruptions. With a lifetime it is the long-run mean of running time for work saved
    (renewal-reward theorem), exact but for less than one start at the beginning and at the end.
    """
    if not job.ends_in_time:
        return _time_of_lives(job)
    return _time_saved_on_notice(job) if job.interval is None else _time_of_stretches(job)


def _time_of_stretches(job: SpotJob) -> SpotTime:
    assert job.interval is not None, "a job in stretches has an interval"
    rate, saves = job.rate, job.segments - 1
    last = job.work - saves * job.interval
    stretches = saves * _grown(rate * (job.interval + job.save)) + _grown(rate * last)
    begun = _lost(rate * job.first_start)
    running = exponential(rate * job.later_start) * (stretches + begun) / rate
    starting = running * _lost(rate * job.later_start) + begun / rate
    saving = saves * job.save
    rework = running - job.work - saving - starting
    return SpotTime(running, job.work, saving, starting, max(rework, Decimal(0)), rate * running)


def _time_saved_on_notice(job: SpotJob) -> SpotTime:
    """Every interruption of work costs a save and what it takes to go on, and no work."""
    rate = job.rate
    begun = _lost(rate * job.first_start) / rate
    noticed = rate * exponential(rate * job.later_start) * (job.work + begun)
    starting = noticed * _lost(rate * job.later_start) / rate + begun
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
    starts = max(Decimal(1), lives + life.excess / life.saved)
    begun = _lost(rate * job.later_start) / rate
    starting = (starts - 1) * begun + _lost(rate * job.first_start) / rate
    saving = max(Decimal(0), lives * life.saving - job.save)
    rework = max(Decimal(0), lives * life.worked - job.work)
    running = job.work + saving + starting + rework
    interruptions = rate * running
    if job.interval is None:
        interruptions -= rate * saving
    interruptions = min(interruptions, starts - 1)
    forced = starts - 1 - interruptions
    return SpotTime(running, job.work, saving, starting, rework, interruptions, forced)


def _life_on_notice(job: SpotJob) -> _Life:
    """Work until the notice or the last moment to save: min(X, w), X exponential of rate r.

    Its mean is (1 - exp(-r w)) / r, half its mean square (1 - exp(-r w)) / r^2 - w exp(-r w) / r.
    """
    assert job.lifetime is not None, "a life has a lifetime"
    rate, reached = job.rate, exponential(-job.rate * job.later_start)
    longest = job.lifetime - job.later_start - job.save
    mean = _lost(rate * longest) / rate
    half_square = mean / rate - longest * exponential(-rate * longest) / rate
    worked = reached * mean
    return _Life(worked, half_square / mean, reached * job.save, worked)


def _life_of_stretches(job: SpotJob, interval: Decimal) -> _Life:
    """K stretches are saved, at most m: P(K >= j) = exp(-r (B + j L)).

    The last life exceeds the job's end by E[K (K - 1)] / 2 E[K] stretches.
    """
    rate, stretch = job.rate, interval + job.save
    reached, stays = exponential(-rate * job.later_start), exponential(-rate * stretch)
    most = ((job.longest - job.later_start) / stretch).to_integral_value()
    through, gone = stays**most, _lost(rate * stretch)
    mean = reached * stays * (1 - through) / gone
    half_pairs = reached * stays * (stays - most * through + (most - 1) * through * stays)
    half_pairs /= gone**2
    saving = mean * job.save
    worked = reached * (1 - through) / rate - saving
    return _Life(mean * interval, half_pairs / mean * interval, saving, worked)


def _lost(exponent: Decimal) -> Decimal:
    """1 - exp(-x): the chance to be interrupted."""
    return exponent if exponent < _TINY else 1 - exponential(-exponent)


def _grown(exponent: Decimal) -> Decimal:
    """exp(x) - 1."""
    return exponent if exponent < _TINY else exponential(exponent) - 1
