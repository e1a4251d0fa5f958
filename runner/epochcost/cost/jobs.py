"""Formulas of the calculator for a reader's job: failed runs, machines for a load, waiting times.

Each takes numbers, or symbols that give a program for the browser.
"""

from __future__ import annotations

from decimal import Decimal

from epochcost.cost.money import exact_arithmetic
from epochcost.cost.program import Json, answers_program
from epochcost.cost.tracing import ceiling, logarithm, maximum, symbol, where
from epochcost.units import HOURS_PER_BILLED_MONTH

_ZERO, _ONE, _MILLION = Decimal(0), Decimal(1), Decimal(1_000_000)
_MONTH_SECONDS = Decimal(HOURS_PER_BILLED_MONTH * 3600)
# Share of the answers that may take longer than the time shown.
_LATE = Decimal("0.01")


def failures_paid(cost: Decimal, failing: Decimal) -> Decimal:
    """The expected cost of failed runs for each successful run; a failed run costs as much."""
    return failing / (_ONE - failing) * cost


def machines_for_load(per_second: Decimal, request_seconds: Decimal, busy: Decimal) -> Decimal:
    """Machines for a rate of requests, each busy at most the share ``busy`` of the time."""
    return maximum(_ONE, ceiling(per_second * request_seconds / busy))


def answered_seconds(batch_seconds: Decimal, batch: Decimal, load: Decimal) -> Decimal:
    """The time within which 99 % of randomly arriving requests are answered, below full load.

    It adds the wait in the queue and, if a batch takes all waiting requests, the batch before. For
    batches of any size the bound lies above a simulated queue's time, by a third at most.
    """
    waiting = logarithm(load / _LATE) / (2 * (_ONE - load))
    queue = maximum(_ZERO, maximum(_ONE - _LATE / load, waiting))
    before = where(batch > 1, _ONE, _ZERO)
    return batch_seconds * (_ONE + queue / batch + before)


def training_program() -> Json:
    """Cost of one training and of all trainings in a month, with failures, and their machines.

    Inputs are a successful run's ``total`` and ``elapsed`` seconds, the share ``failed``, and the
    number ``times`` in a month.
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

    Inputs are the ``seconds`` of a ``batch``, and the share ``busy`` that limits a machine's load.
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
