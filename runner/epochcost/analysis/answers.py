"""The one place that commands and pages ask: times, priced rows, offers and the choice among them.

Only what a question is about is observed, counted and predicted. How an answer reads is left to
those who ask.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal

from epochcost.analysis.inputs import Inputs
from epochcost.analysis.observations import Goal, Observation, observe
from epochcost.analysis.predicted import NoTime, predict_times
from epochcost.analysis.rows import Offer, Offers, Row, offers, price_rows
from epochcost.cost.compare import Decision, cheapest_within, fastest_within


@dataclass(frozen=True, slots=True)
class Times:
    """Measured and published times, predicted ones of work without any, and who has none."""

    observations: tuple[Observation, ...]
    without: tuple[NoTime, ...]


def times_of(inputs: Inputs, workloads: Collection[str]) -> Times:
    """The times of some workloads, by id; raises as ``predict_times`` does."""
    timed = observe(inputs, workloads=workloads)
    models = inputs.catalogue.models
    predicted = predict_times(inputs, [models[name] for name in workloads if name in models])
    machines = {one.machine.hardware for one in timed}
    return Times(
        (*timed, *predicted.beyond(timed)),
        tuple(one for one in predicted.without if one.id not in machines),
    )


def rows_of(inputs: Inputs, workloads: Collection[str]) -> tuple[Row, ...]:
    """The times of some workloads under today's prices; raises as ``times_of`` does."""
    return price_rows(inputs.catalogue, times_of(inputs, workloads).observations)


def offers_of(inputs: Inputs, workload: str, goal: Goal) -> tuple[Offers, tuple[NoTime, ...]]:
    """The offers for a goal of one workload, and the machines without a time.

    Raises as ``times_of`` does.
    """
    times = times_of(inputs, [workload])
    return offers(price_rows(inputs.catalogue, times.observations), goal), times.without


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
