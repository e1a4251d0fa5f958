"""Formulas for a reader's own job give the same as numbers and as the browser's programs."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

from bill_programs import answers
from epochcost.cost.jobs import (
    answered_seconds,
    machines_for_load,
    million_program,
    serving_program,
    training_program,
)


def test_failures_and_machines_of_trainings() -> None:
    """Of 5 runs 1 fails, so a quarter more is paid; 1,000 runs of an hour fill two machines.

    Machines that answer 10,000 requests for 200 dollars answer a million for 20,000.
    """
    inputs = {"total": 8, "elapsed": 3600, "failed": "0.2", "times": 1000}
    job = answers(training_program(), {name: Decimal(value) for name, value in inputs.items()})
    assert job == {"failures": 2, "each": 10, "total": 10_000, "machines": 2}
    served = {"total": Decimal(200), "rate": Decimal(10), "month": Decimal(1000)}
    assert answers(million_program(), served) == {"each": 20_000}


def test_machines_stay_below_the_load_that_is_allowed() -> None:
    """Ten requests a second of 0.1 s each take one machine, or two at a load of 70 %."""
    assert machines_for_load(Decimal(10), Decimal("0.1"), Decimal(1)) == 1
    assert machines_for_load(Decimal(10), Decimal("0.1"), Decimal("0.7")) == 2
    inputs = {"rate": 10, "seconds": "0.4", "batch": 4, "busy": "0.7"}
    job = answers(serving_program(), {name: Decimal(value) for name, value in inputs.items()})
    assert (job["machines"], job["load"]) == (2, Decimal("0.5"))
    waited = answered_seconds(Decimal("0.4"), Decimal(4), Decimal("0.5"))
    assert float(job["seconds"]) == pytest.approx(float(waited))


@pytest.mark.parametrize("load", [0.2, 0.5, 0.8])
def test_the_bound_holds_in_a_simulated_queue(load: float) -> None:
    """99 % of random requests are answered within the bound, which is at most a third too high."""
    arrivals = np.random.default_rng(20261126).exponential(1 / load, 2_000_000)
    behind = np.cumsum(1 - arrivals)
    waits = behind - np.minimum.accumulate(np.minimum(behind, 0))
    simulated = 1 + float(np.quantile(waits, 0.99))
    bound = float(answered_seconds(Decimal(1), Decimal(1), Decimal(str(load))))
    assert simulated <= bound <= simulated * 4 / 3
