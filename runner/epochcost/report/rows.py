"""The one join of the report: timed workloads × price plans → priced rows.

Everything that the site shows is read from rows. Figures of different machines are never pooled,
and a missing price stays a state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from epochcost.cost import (
    Cost,
    Estimate,
    Time,
    TrainingCosts,
    TrainingTime,
    million_inferences,
    training_costs,
)
from epochcost.cost.money import exact_arithmetic
from epochcost.report.collection import without_collection
from epochcost.report.inputs import Inputs
from epochcost.report.observations import Observation, observe
from epochcost.specs.catalogue import Catalogue, current_prices
from epochcost.specs.price import Price

Goal = Literal["epoch", "full", "million"]
Mark = Literal["measured", "measured, price assumed", "published", "published, price assumed"]
GOALS: tuple[Goal, ...] = ("epoch", "full", "million")


@dataclass(frozen=True, slots=True)
class Row:
    """An observation under one price plan.

    ``current`` says that no newer price of the same plan is known; a superseded one stays in the
    tables, dated, and ``answers`` nothing. ``price`` None: no price is known.
    """

    observed: Observation
    price: Price | None
    current: bool
    training: TrainingCosts | None = None
    inference: Cost | None = None

    @property
    def answers(self) -> bool:
        """Whether the row may be the answer to what is cheapest or fastest."""
        return self.current and self.observed.epochs_known

    @property
    def assumed(self) -> bool:
        """Whether the price is an assumption and nobody's price list."""
        return self.price is not None and self.price.assumed

    @property
    def mark(self) -> Mark:
        """How sure the figure is, in the words that tables and legends use."""
        if self.observed.kind == "measured":
            return "measured, price assumed" if self.assumed else "measured"
        return "published, price assumed" if self.assumed else "published"

    @property
    def plan(self) -> str:
        """The price plan in one phrase, with its date."""
        if self.price is None:
            return "no price"
        region = f", {self.price.region}" if self.price.region else ""
        return f"{self.price.provider} {self.price.plan}{region}, {self.price.as_of}"

    def cost(self, goal: Goal) -> Cost | None:
        """What the goal costs; None where this row is not about it."""
        if goal == "million":
            return self.inference
        if self.training is None:
            return None
        return self.training.epoch if goal == "epoch" else self.training.full

    def time(self, goal: Goal) -> Time | None:
        """How long the goal takes; None where this row is not about it."""
        if goal == "million":
            return self.observed.million
        return self.observed.epoch if goal == "epoch" else self.observed.full

    def estimate(self, goal: Goal) -> Estimate | None:
        """The cost where there is one: neither unpriced nor about something else."""
        cost = self.cost(goal)
        return cost if isinstance(cost, Estimate) else None


def join(inputs: Inputs) -> tuple[Row, ...]:
    """All rows, those of one subject and mode together, cheapest first, the unpriced last."""
    with without_collection():
        return priced(inputs.catalogue, observe(inputs))


def priced(catalogue: Catalogue, observations: Iterable[Observation]) -> tuple[Row, ...]:
    """The rows of some observations, ordered as all are."""
    # Once for each machine: there may be many thousand observations.
    current = {name: current_prices(catalogue.prices_of(name)) for name in catalogue.hardware}
    today = {price.id for prices in current.values() for price in prices}
    # One context for all bills: each would set its own.
    with exact_arithmetic():
        rows = [
            _priced(observed, price, current=price is None or price.id in today)
            for observed in observations
            for price in _plans(catalogue, observed, current)
        ]
    return tuple(sorted(rows, key=_order))


def at_every_price(catalogue: Catalogue, observations: Iterable[Observation]) -> tuple[Row, ...]:
    """The rows under all prices that are known of the machines, superseded ones too."""
    today = {
        price.id
        for name in catalogue.hardware
        for price in current_prices(catalogue.prices_of(name))
    }
    return tuple(
        _priced(observed, price, current=price.id in today)
        for observed in observations
        for price in catalogue.prices_of(observed.machine.hardware)
    )


def _plans(
    catalogue: Catalogue, observed: Observation, current: Mapping[str, tuple[Price, ...]]
) -> Iterable[Price | None]:
    """Today's plans of the machine and, for a published figure, the one that its source paid."""
    plans = current[observed.machine.hardware]
    own = catalogue.prices.get(observed.own_price) if observed.own_price else None
    if own is not None and own not in plans:
        plans = (own, *plans)
    return plans or (None,)


def _priced(observed: Observation, price: Price | None, *, current: bool) -> Row:
    vcpus, accelerated = observed.machine.vcpus, observed.machine.device == "cuda"
    if observed.mode == "training" and observed.epoch and observed.epochs:
        time = TrainingTime(observed.epoch, observed.epochs, observed.step)
        costs = training_costs(price, time, vcpus=vcpus, accelerated=accelerated)
        return Row(observed, price, current, training=costs)
    assert observed.step is not None, "inference is observed by its step"
    cost = million_inferences(
        price, observed.step, observed.batch_size, vcpus=vcpus, accelerated=accelerated
    )
    return Row(observed, price, current, inference=cost)


def _order(row: Row) -> tuple[object, ...]:
    goal: Goal = "epoch" if row.observed.mode == "training" else "million"
    estimate = row.estimate(goal)
    cost = estimate.mean if estimate else Decimal("Infinity")
    return row.observed.subject.id, row.observed.mode == "inference", cost, row.plan
