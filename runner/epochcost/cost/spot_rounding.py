"""What billing adds to the starts of an interrupted job: steps, minimums, interrupted periods free.

To be called inside `exact_arithmetic`.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import ROUND_FLOOR, Decimal
from itertools import islice

from epochcost.cost.money import exponential, kept
from epochcost.cost.spot import SpotJob, SpotTime
from epochcost.cost.starts import rounded
from epochcost.specs.billing import Billing

# Where the last start begins further from the end, its end is anywhere in a step.
_LAST_STRETCHES = 200


def rounding_seconds(job: SpotJob, time: SpotTime, rule: Billing, *, free: bool) -> Decimal:
    """The billed time beyond the running time that is expected; negative where more is free.

    Each start is rounded by itself. One that is interrupted lasts an exponential time, cut at the
    job's longest start, and is rounded in closed form; where the interrupted period is ``free``,
    down to whole steps. The last start is rounded as each that may be the last is.
    """
    if rule.increment_seconds == 0 and rule.minimum_seconds == 0:
        return Decimal(0)
    added = time.interruptions * _added_to_interrupted(job.rate, job.longest, rule, free=free)
    if time.forced > 0:
        added += time.forced * (rounded(job.longest, rule) - job.longest)
    return added + _added_to_last(job, rule)


def _added_to_last(job: SpotJob, rule: Billing) -> Decimal:
    """The mean of what is billed beyond the last start.

    It is the first one with the chance that nothing happens. It begins k stretches before the end
    with the expected number of interruptions there, times the chance that none follows. Of starts
    that begin earlier than `_LAST_STRETCHES` from the end, or anywhere, half a step is added.
    """
    half = rule.increment_seconds / 2
    if not job.ends_in_time:
        return half
    calm = exponential(-job.rate * job.undisturbed)
    added = calm * (rounded(job.undisturbed, rule) - job.undisturbed)
    if job.interval is None:
        return added + (1 - calm) * half
    left = 1 - calm
    for chance, length in islice(_last_starts(job), _LAST_STRETCHES):
        # A length of exactly whole steps must not be one step more by its last digit.
        added += chance * (rounded(kept(length), rule) - length)
        left -= chance
    return added + max(Decimal(0), left) * half


def _last_starts(job: SpotJob) -> Iterator[tuple[Decimal, Decimal]]:
    """The chance that the last start begins in each stretch, the last first, and how long it is."""
    assert job.interval is not None, "a job in stretches has an interval"
    stretches, stretch = int(job.segments), job.interval + job.save
    tail = job.work - (stretches - 1) * job.interval
    again = exponential(job.rate * job.later_start)
    interruptions, length = again * (exponential(job.rate * tail) - 1), job.later_start + tail
    uninterrupted, through = exponential(-job.rate * length), exponential(-job.rate * stretch)
    each = again * (1 / through - 1)
    for number in range(stretches):
        if number == stretches - 1:
            interruptions += again * (1 - exponential(-job.rate * job.first_start))
        yield interruptions * uninterrupted, length
        interruptions, length, uninterrupted = each, length + stretch, uninterrupted * through


def _added_to_interrupted(rate: Decimal, longest: Decimal, rule: Billing, *, free: bool) -> Decimal:
    """The mean of what is billed beyond an exponential time, given that it is below ``longest``."""
    step, minimum = rule.increment_seconds, rule.minimum_seconds
    chance = 1 - exponential(-rate * longest)
    if chance == 0:
        return Decimal(0)
    length = _mean_part(rate, longest, Decimal(0))
    billed = _mean_part(rate, longest, step)
    if free:
        billed -= step * chance
    else:
        short = min(minimum, longest)
        billed += minimum * (1 - exponential(-rate * short)) - _mean_part(rate, short, step)
    return (billed - length) / chance


def _mean_part(rate: Decimal, end: Decimal, step: Decimal) -> Decimal:
    """The integral of an exponential time, in whole steps begun, up to ``end``; step 0: as it is.

    Of steps h with x = exp(-rate h), K of them whole before the end e:
    h ((1 - x^K) / (1 - x) - K x^K) + (K + 1) h (x^K - exp(-rate e)).
    """
    left = exponential(-rate * end)
    if step == 0:
        return (1 - left) / rate - end * left
    whole = (end / step).to_integral_value(ROUND_FLOOR)
    through, one = exponential(-rate * whole * step), exponential(-rate * step)
    full = (1 - through) / (1 - one) - whole * through
    return step * (full + (whole + 1) * (through - left))
