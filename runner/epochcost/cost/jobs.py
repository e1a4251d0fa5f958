"""A reader's own job: failed runs, machines for a rate of requests, and how long these wait.

The calculator's formulas. Each takes numbers, or symbols that give a program for the browser.
"""

from __future__ import annotations

from decimal import Decimal

from epochcost.cost.money import exact_arithmetic
from epochcost.cost.program import Json, answers_program
from epochcost.cost.tracing import ceiling, logarithm, maximum, symbol, where
from epochcost.units import HOURS_PER_BILLED_MONTH

_ZERO, _ONE, _MILLION = Decimal(0), Decimal(1), Decimal(1_000_000)
_MONTH_SECONDS = Decimal(HOURS_PER_BILLED_MONTH * 3600)
# Of the answers, the share that may take longer than the time that is shown.
_LATE = Decimal("0.01")


def failures_paid(cost: Decimal, failing: Decimal) -> Decimal:
    """The expected cost of the runs that fail for one that succeeds; each costs as much."""
    return failing / (_ONE - failing) * cost


def machines_for_load(per_second: Decimal, request_seconds: Decimal, busy: Decimal) -> Decimal:
    """The machines that keep each below a share of its time while requests arrive at a rate."""
    return maximum(_ONE, ceiling(per_second * request_seconds / busy))


def answered_seconds(batch_seconds: Decimal, batch: Decimal, load: Decimal) -> Decimal:
    """The time within which 99 % of requests that arrive at random are answered, below full load.

    It adds the wait of those that queue and, if a batch takes all who wait, the batch before. For
    batches of any size the bound lies above what a simulated queue gives, by a third at most.
    """
    waiting = logarithm(load / _LATE) / (2 * (_ONE - load))
    queue = maximum(_ZERO, maximum(_ONE - _LATE / load, waiting))
    before = where(batch > 1, _ONE, _ZERO)
    return batch_seconds * (_ONE + queue / batch + before)


def training_program() -> Json:
    """Trainings in a month: what one and all cost with failures, and the machines side by side.

    Of a successful run's ``total`` and ``elapsed`` seconds, the share ``failed``, and ``times``.
    """
    total, elapsed, failed, times = map(symbol, ("total", "elapsed", "failed", "times"))
    failures = failures_paid(total, failed)
    each = total + failures
    return answers_program(
        {
            "failures": failures,
            "each": each,
            "total": each * times,
            "machines": ceiling(elapsed * times / _MONTH_SECONDS),
        }
    )


def serving_program() -> Json:
    """Machines for ``rate`` requests a second, the load of each, and the time of answers.

    Of the ``seconds`` of a ``batch`` on a machine that is ``busy`` at most so large a share.
    """
    rate, seconds, batch, busy = map(symbol, ("rate", "seconds", "batch", "busy"))
    with exact_arithmetic():
        machines = machines_for_load(rate, seconds / batch, busy)
        load = rate * (seconds / batch) / machines
        answered = answered_seconds(seconds, batch, load)
    return answers_program({"machines": machines, "load": load, "seconds": answered})


def million_program() -> Json:
    """Cost of a million requests if ``rate`` a second cost ``total`` in ``month`` seconds."""
    total, rate, month = map(symbol, ("total", "rate", "month"))
    return answers_program({"each": total / (rate * month) * _MILLION})
