"""Steps, epochs, full trainings and a million inferences, each at the right kind of bill."""

from __future__ import annotations

from decimal import Decimal

import pytest

from epochcost.cost import (
    Cost,
    Estimate,
    Time,
    TrainingTime,
    Unpriced,
    million_inferences,
    training_costs,
)
from price_plans import owned, rented


def mean(cost: Cost | None) -> Decimal:
    """The amount at the mean of a cost that is priced."""
    assert isinstance(cost, Estimate)
    return cost.mean


def test_a_training_from_its_step_time() -> None:
    """0.36 s a step, 1000 steps, 25 epochs at $1: a share, an hour alone, and three whole hours."""
    step = Time(Decimal("0.35"), Decimal("0.36"), Decimal("0.37"))
    costs = training_costs(rented("1", "whole-hour"), TrainingTime.of_steps(step, 1000, 25))
    assert mean(costs.step) == Decimal("0.0001")
    assert mean(costs.epoch) == Decimal("0.1")
    assert mean(costs.epoch_alone) == 1
    assert mean(costs.full) == 3


def test_a_published_epoch_needs_no_step() -> None:
    """Kroutikov's 25 epochs on p2.xlarge: 2.97 hours, prorated $2.675, in whole hours $2.70."""
    published = TrainingTime(Time.exactly(Decimal(428)), 25)
    costs = training_costs(rented("0.90", "whole-hour"), published)
    assert costs.step is None
    assert mean(costs.full) == Decimal("2.70")
    prorated = training_costs(rented("0.90", "prorated"), published)
    assert mean(prorated.full) == Decimal("2.675")


def test_every_cost_is_unpriced_by_itself() -> None:
    """A training longer than a century has a price per epoch and none as a whole."""
    costs = training_costs(rented(), TrainingTime(Time.exactly(Decimal(10**8)), 1000))
    assert isinstance(costs.epoch, Estimate)
    assert isinstance(costs.full, Unpriced)


@pytest.mark.parametrize(("batch_size", "dollars"), [(1, "100"), (32, "3.125"), (100, "1")])
def test_a_million_inferences(batch_size: int, dollars: str) -> None:
    """At 0.36 s a batch and $1 an hour a million batches cost $100; bigger batches share it."""
    batch = Time.exactly(Decimal("0.36"))
    cost = million_inferences(rented("1", "whole-hour"), batch, batch_size)
    assert mean(cost) == Decimal(dollars)


def test_without_a_price_all_is_unpriced() -> None:
    """No part of a training without a price has an amount."""
    costs = training_costs(None, TrainingTime.of_steps(Time.exactly(Decimal(1)), 10, 2))
    for cost in (costs.step, costs.epoch, costs.epoch_alone, costs.full):
        assert isinstance(cost, Unpriced)


def test_accelerated_work_is_unpriced_by_a_plan_of_vcpus() -> None:
    """Where a price knows no GPU, nothing that ran on one has an amount."""
    plan, second = owned(per_vcpu=True), Time.exactly(Decimal(1))
    time = TrainingTime.of_steps(second, 10, 2)
    costs = training_costs(plan, time, vcpus=8, accelerated=True)
    million = million_inferences(plan, second, 32, vcpus=8, accelerated=True)
    for cost in (costs.step, costs.epoch, costs.epoch_alone, costs.full, million):
        assert isinstance(cost, Unpriced)
        assert "no accelerator" in cost.reason
    assert isinstance(million_inferences(plan, second, 32, vcpus=8), Estimate)
