"""What billing rounds up: one start to steps and a minimum, and the starts of an interrupted job.

To be called inside `exact_arithmetic`, but for `billed_seconds`.
"""

from __future__ import annotations

from decimal import Decimal

from epochcost.cost.money import exact_arithmetic, quantized
from epochcost.cost.spot import SpotJob, SpotTime
from epochcost.cost.tracing import (
    branch,
    ceil_divide,
    expm1,
    exponential,
    floor,
    fold,
    is_zero,
    minimum,
    one_minus_exp,
    where,
)
from epochcost.specs.terms import Billing

# Where the last start begins further from the end, its end is anywhere in a step.
_LAST_STRETCHES = Decimal(200)
_ZERO = Decimal(0)


def billed_seconds(used_seconds: Decimal, rule: Billing) -> Decimal:
    """Round the seconds of one start up to those that are billed.

    Use up to the minimum is billed as the minimum, longer use in whole steps (a step of 0: as
    used). Billing billed seconds again changes nothing.
    """
    with exact_arithmetic():
        return round_up(used_seconds, rule)


def round_up(used_seconds: Decimal, rule: Billing) -> Decimal:
    """As ``billed_seconds``, inside `exact_arithmetic`."""
    step, least = rule.increment_seconds, rule.minimum_seconds
    whole = ceil_divide(used_seconds, step) * step if step else used_seconds
    return where(used_seconds <= least, least, whole) if least else whole


def rounding_seconds(job: SpotJob, time: SpotTime, rule: Billing, *, free: bool) -> Decimal:
    """The billed time beyond the running time that is expected; negative where more is free.

    Each start is rounded by itself. One that is interrupted lasts an exponential time, cut at the
    job's longest start, and is rounded in closed form; where the interrupted period is ``free``,
    down to whole steps. The last start is rounded as each that may be the last is.
    """
    if rule.increment_seconds == 0 and rule.minimum_seconds == 0:
        return _ZERO
    added = time.interruptions * _added_to_interrupted(job.rate, job.longest, rule, free=free)
    if not is_zero(time.forced):
        added += time.forced * (round_up(job.longest, rule) - job.longest)
    return added + _added_to_last(job, rule)


def _added_to_last(job: SpotJob, rule: Billing) -> Decimal:
    """The mean of what is billed beyond the last start.

    It is the first one with the chance that nothing happens. It begins k stretches before the end
    with the expected number of interruptions there, times the chance that none follows. Of starts
    that begin earlier than `_LAST_STRETCHES` from the end, or anywhere, half a step is added.
    """
    half = rule.increment_seconds / 2

    def of_one_life() -> Decimal:
        at_first = job.undisturbed
        calm, added = exponential(-job.rate * at_first), round_up(at_first, rule) - at_first
        later = one_minus_exp(job.rate * at_first) * half
        return calm * added + later + _added_beyond_half(job, rule, half)

    return branch(job.ends_in_time, of_one_life, lambda: half)


def _added_beyond_half(job: SpotJob, rule: Billing, half: Decimal) -> Decimal:
    """What later starts add beyond half a step, by the stretch in which the last begins.

    The last stretch comes first. ``begun`` are the interruptions expected there, ``left_alone`` is
    the chance of none from there to the end. Those while the first start begins are added by
    themselves: they are of the stretch that is the furthest from the end.
    """
    if job.interval is None:
        return _ZERO
    stretch, rate = job.interval + job.save, job.rate
    tail = job.work - (job.segments - 1) * job.interval
    again, through = exponential(rate * job.later_start), exponential(-rate * stretch)
    each = again * expm1(rate * stretch)

    def added(length: Decimal) -> Decimal:
        # A length of exactly whole steps must not be one step more by its last digit.
        return round_up(quantized(length), rule) - length - half

    def step(
        _: Decimal, begun: Decimal, length: Decimal, left_alone: Decimal
    ) -> tuple[Decimal, tuple[Decimal, ...]]:
        following = each, length + stretch, left_alone * through
        return begun * left_alone * added(length), following

    def from_the_start() -> Decimal:
        length = job.longest_restart
        return (
            again
            * one_minus_exp(rate * job.first_start)
            * exponential(-rate * length)
            * added(length)
        )

    start = job.later_start + tail
    first = again * expm1(rate * tail), start, exponential(-rate * start)
    beyond = fold(minimum(job.segments, _LAST_STRETCHES), first, step)
    return beyond + branch(job.segments <= _LAST_STRETCHES, from_the_start, lambda: _ZERO)


def _added_to_interrupted(rate: Decimal, longest: Decimal, rule: Billing, *, free: bool) -> Decimal:
    """The mean of what is billed beyond an exponential time, given that it is below ``longest``."""
    step, least = rule.increment_seconds, rule.minimum_seconds
    chance = one_minus_exp(rate * longest)
    length = _mean_part(rate, longest, Decimal(0))
    billed = _mean_part(rate, longest, step)
    if free:
        billed -= step * chance
    elif least:
        short = minimum(least, longest)
        billed += least * one_minus_exp(rate * short) - _mean_part(rate, short, step)
    return (billed - length) / chance


def _mean_part(rate: Decimal, end: Decimal, step: Decimal) -> Decimal:
    """The integral of an exponential time, in whole steps begun, up to ``end``; step 0: as it is.

    Of steps h with x = exp(-rate h), K of them whole before the end e:
    h ((1 - x^K) / (1 - x) - K x^K) + (K + 1) h (x^K - exp(-rate e)).
    """
    left = exponential(-rate * end)
    if step == 0:
        return one_minus_exp(rate * end) / rate - end * left
    whole = floor(end / step)
    through = exponential(-rate * whole * step)
    full = one_minus_exp(rate * whole * step) / one_minus_exp(rate * step) - whole * through
    return step * (full + (whole + 1) * (through - left))
