"""Formulas of the site's calculator, and the JSON programs that compute them in the browser."""

from __future__ import annotations

from decimal import Decimal

from epochcost.cost.money import exact_arithmetic
from epochcost.cost.program import Json, answers_program
from epochcost.cost.tracing import ceiling, logarithm, maximum, symbol, where
from epochcost.units import HOURS_PER_BILLED_MONTH

_ZERO, _ONE, _MILLION = Decimal(0), Decimal(1), Decimal(1_000_000)
_MONTH_SECONDS = Decimal(HOURS_PER_BILLED_MONTH * 3600)
# Share of the answers that may take longer than the computed time.
_LATE = Decimal("0.01")


def machines_for_load(per_second: Decimal, request_seconds: Decimal, busy: Decimal) -> Decimal:
    """Number of machines for a load; none is busy for more than the share ``busy`` of the time."""
    return maximum(_ONE, ceiling(per_second * request_seconds / busy))


def answered_seconds(batch_seconds: Decimal, batch: Decimal, load: Decimal) -> Decimal:
    """Seconds within which 99 % of randomly arriving requests are answered, after the queue.

    A machine answers ``batch`` requests together in ``batch_seconds``, and is busy for the share
    ``load`` of the time, below 1. The result is an upper bound: at most a third too high in
    simulated queues with batches of 1 and loads from 0.2 to 0.8.
    """
    waiting = logarithm(load / _LATE) / (2 * (_ONE - load))
    queue = maximum(_ZERO, maximum(_ONE - _LATE / load, waiting))
    # Above a batch of 1, requests also wait for one more batch.
    before = where(batch > 1, _ONE, _ZERO)
    return batch_seconds * (_ONE + queue / batch + before)


def training_program() -> Json:
    """Program for the calculator: cost and number of machines of a month's trainings.

    Inputs are the cost ``total`` and the ``elapsed`` seconds of a successful run, the probability
    ``failed`` of a failure, and the number ``times`` of trainings in a month.
    """
    total, elapsed, failed, times = map(symbol, ("total", "elapsed", "failed", "times"))
    # With the probability p of a failure, p / (1 - p) failures are expected for each success.
    failures = failed / (_ONE - failed) * total
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
    """Program for the calculator: machines for a rate of requests, and their `answered_seconds`.

    Inputs are the ``rate`` of requests a second, the number ``batch`` of requests in a batch, the
    ``seconds`` of a batch, and the largest share ``busy`` of the time that a machine may work.
    """
    rate, seconds, batch, busy = map(symbol, ("rate", "seconds", "batch", "busy"))
    with exact_arithmetic():
        machines = machines_for_load(rate, seconds / batch, busy)
        load = rate * (seconds / batch) / machines
        answered = answered_seconds(seconds, batch, load)
    return answers_program({"machines": machines, "load": load, "seconds": answered})


def million_program() -> Json:
    """Program for the calculator: the cost of a million requests.

    Inputs are the monthly cost ``total`` of all machines, the ``rate`` of requests a second that
    they answer together, and ``month``, the seconds of use in a month.
    """
    total, rate, month = map(symbol, ("total", "rate", "month"))
    return answers_program({"each": total / (rate * month) * _MILLION})
