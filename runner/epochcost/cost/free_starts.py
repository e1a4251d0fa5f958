"""Free starts: the expected number and total time of runs of a machine that are not billed.

A machine's run lasts from its start until an interruption or the job's end. Under some plans, a run
is free if the provider takes the machine back within F seconds. Let r be the rate of interruptions,
and t the time from the start to the job's end if no interruption comes. Then a run is free with the
probability 1 - exp(-r min(t, F)). Call the functions within `exact_arithmetic`.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from epochcost.cost.spot import SpotJob, SpotTime
from epochcost.cost.tracing import ceiling, expm1, exponential, maximum, minimum, one_minus_exp

_ZERO = Decimal(0)


@dataclass(frozen=True, slots=True)
class FreeStarts:
    """The expected number of machine runs that are not billed, and their total seconds."""

    number: Decimal
    seconds: Decimal

    def times(self, factor: Decimal) -> FreeStarts:
        """A copy with both ``number`` and ``seconds`` multiplied by ``factor``."""
        return FreeStarts(factor * self.number, factor * self.seconds)

    def __add__(self, more: FreeStarts) -> FreeStarts:
        return FreeStarts(self.number + more.number, self.seconds + more.seconds)


def free_starts(job: SpotJob, time: SpotTime) -> FreeStarts:
    """Expected number and total time of the free runs of a job's machines, by a closed formula.

    Only the interruptions of ``time`` are used. The job's machines must have no limited lifetime.
    """
    if not job.free:
        return FreeStarts(_ZERO, _ZERO)
    whole = job.undisturbed - job.first_start
    begun = exponential(job.rate * job.later_start) * one_minus_exp(job.rate * job.first_start)
    at_start = _free_start(job, job.undisturbed)
    at_start += _free_start(job, job.later_start + whole).times(begun)
    if job.interval is not None:
        return at_start + _free_restarts_in_stretches(job)
    free = at_start + _free_restarts_without_rework(job)
    # A start that is interrupted during work also writes a checkpoint after the notice.
    idle = one_minus_exp(job.rate * minimum(job.first_start, job.free))
    idle += time.interruptions * one_minus_exp(job.rate * minimum(job.later_start, job.free))
    return FreeStarts(free.number, free.seconds + job.save * (free.number - idle))


def _free_start(job: SpotJob, seconds_to_end: Decimal) -> FreeStarts:
    """The probability that the run after a start is free, and the mean of its free seconds.

    ``seconds_to_end`` is the time from the start to the job's end if no interruption comes.
    """
    until = minimum(seconds_to_end, job.free)
    chance = one_minus_exp(job.rate * until)
    return FreeStarts(chance, chance / job.rate - until * exponential(-job.rate * until))


def _free_restarts_in_stretches(job: SpotJob) -> FreeStarts:
    """Expected number and total time of the free later runs of a job with checkpoints.

    Later runs follow an interruption. The caller adds those that begin before any work is done. The
    result is a sum over the stretches of work between checkpoints.
    """
    assert job.interval is not None, "a job in stretches has an interval"
    rate, again = job.rate, exponential(job.rate * job.later_start)
    length, saves = job.interval + job.save, job.saves
    last = job.later_start + job.work - saves * job.interval
    short = minimum(maximum(ceiling((job.free - last) / length) - 1, _ZERO), saves)
    # Let r be the rate and L the length of a stretch with checkpoint. Starts with j stretches
    # before the last stretch are summed over j: the sums of exp(-r j L) and of j exp(-r j L) have
    # closed forms.
    each, ratio = one_minus_exp(rate * length), exponential(-rate * length)
    powers = ratio * one_minus_exp(rate * length * short) / each
    numbered = (powers - short * ratio * exponential(-rate * length * short)) / each
    at_last = exponential(-rate * last)
    chances = short - at_last * powers
    seconds = chances / rate - at_last * (last * powers + length * numbered)
    full = _free_start(job, job.free).times(saves - short)
    earlier = (FreeStarts(chances, seconds) + full).times(again * expm1(rate * length))
    return earlier + _free_start(job, last).times(again * expm1(rate * (last - job.later_start)))


def _free_restarts_without_rework(job: SpotJob) -> FreeStarts:
    """Expected number and total time of the free later runs of a job that loses no work.

    The caller adds the runs that begin before any work is done, and the time of checkpoints on
    notice. The result is an integral over the seconds of the work.
    """
    rate, again = job.rate, exponential(job.rate * job.later_start)
    short = minimum(maximum(job.free - job.later_start, _ZERO), job.work)
    begin, end = job.later_start, job.later_start + short
    lasting = exponential(-rate * begin) * one_minus_exp(rate * short) / rate
    chances = short - lasting
    by_length = (begin + 1 / rate) * exponential(-rate * begin)
    by_length -= (end + 1 / rate) * exponential(-rate * end)
    full = _free_start(job, job.free).times(job.work - short)
    return (FreeStarts(chances, (chances - by_length) / rate) + full).times(rate * again)
