"""The one place that commands and pages ask: times, priced rows, offers and the choice among them.

Only what a question is about is observed, counted and predicted. How an answer reads is left to
those who ask.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal

from epochcost.analysis.inputs import Inputs
from epochcost.analysis.observations import Goal, Observation, Stack, observe
from epochcost.analysis.predicted import NoTime, predict_times
from epochcost.analysis.rows import Offer, Offers, Row, by_stack, offers, price_rows
from epochcost.cost.compare import Decision, cheapest_within, fastest_within
from epochcost.predict.design import Precision


@dataclass(frozen=True, slots=True)
class Times:
    """Measured and published times, predicted ones of work without any, and who has none."""

    observations: tuple[Observation, ...]
    without: tuple[NoTime, ...]


def times_of(
    inputs: Inputs, workloads: Collection[str], precision: Precision | None = None
) -> Times:
    """The times of some workloads, by id, in one precision or whatever is usual.

    Raises as ``predict_times`` does.
    """
    timed = [
        one for one in observe(inputs, workloads=workloads) if precision in (None, one.precision)
    ]
    models = inputs.catalogue.models
    asked = [models[name] for name in workloads if name in models]
    predicted = predict_times(inputs, asked, precision)
    machines = {one.machine.hardware for one in timed}
    return Times(
        (*timed, *predicted.beyond(timed)),
        tuple(one for one in predicted.without if one.id not in machines),
    )


def rows_of(inputs: Inputs, workloads: Collection[str]) -> tuple[Row, ...]:
    """The times of some workloads under today's prices; raises as ``times_of`` does."""
    return price_rows(inputs.catalogue, times_of(inputs, workloads).observations)


def offers_of(
    inputs: Inputs,
    workload: str,
    goal: Goal,
    stack: Stack | None = None,
    precision: Precision | None = None,
) -> tuple[tuple[Offers, ...], tuple[NoTime, ...]]:
    """The offers of each stack for a goal of one workload, and the machines without a time.

    The stack that is asked for comes first, else the one that is known best; there are none where
    it has no time. Raises as ``times_of`` does.
    """
    times = times_of(inputs, [workload], precision)
    stacks = by_stack(price_rows(inputs.catalogue, times.observations), goal)
    ordered = sorted(stacks, key=lambda rows: rows[0].observed.stack != stack)
    if not ordered or stack not in (None, ordered[0][0].observed.stack):
        return (), times.without
    return tuple(offers(rows, goal) for rows in ordered), times.without


def choose(
    found: Offers, deadline_seconds: Decimal | None, budget: Decimal | None
) -> Decision[Offer]:
    """The best of offers: the cheapest, in time where there is a deadline, else the fastest.

    The fastest only with a budget and no deadline. Without a choice, ``nearest`` is what misses the
    limits by least.
    """
    if deadline_seconds is None:
        if budget is None:
            return Decision(next(iter(found.candidates), None))
        return fastest_within(found.candidates, budget)
    decision = cheapest_within(found.candidates, deadline_seconds)
    if decision.choice and budget is not None and decision.choice.cost.mean > budget:
        return Decision(None, decision.choice)
    return decision
