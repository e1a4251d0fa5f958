"""Odds of being the cheapest: what they add up to, and what moves them."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from epochcost.analysis.machines import Machine
from epochcost.analysis.observations import Evidence, Observation, Workload
from epochcost.analysis.odds import cost_draws, odds, odds_sentence, time_draws
from epochcost.cost import Estimate, Time
from epochcost.predict.joint import DRAWS, Draws

_WAYS = st.dictionaries(st.text(max_size=3), st.floats(0.01, 100), min_size=1, max_size=6)


def _observed(name: str, drawn: NDArray[np.float64] | None = None) -> Observation:
    draws = None if drawn is None else Draws(0, (), drawn)
    return Observation(
        workload=Workload("net", "Net", "a task", is_model=True),
        machine=Machine(name, None, name, "cuda", 8),
        kind="predicted" if draws is not None else "measured",
        mode="training",
        batch_size=8,
        software="a runtime",
        step=Time.exact(Decimal(1)),
        epoch=Time.exact(Decimal(1)),
        epochs=1,
        date=dt.date(2026, 11, 26),
        evidence=Evidence(name, name),
        draws=draws,
    )


def _cost(low: float, mean: float, high: float) -> Estimate:
    ends = (Decimal(str(value)) for value in (low, mean, high))
    return Estimate(*ends, "USD", "plan", assumed=False)


def _costs(levels: dict[str, float], spread: float = 0.5) -> dict[str, NDArray[np.float64]]:
    rng = np.random.default_rng(1)
    return {
        name: level * np.exp(spread * rng.standard_normal(DRAWS)) for name, level in levels.items()
    }


@given(_WAYS)
def test_probabilities_add_up_to_one(levels: dict[str, float]) -> None:
    """Whatever the costs, one of the ways is the cheapest; regret is never below zero."""
    found = odds(next(iter(levels)), _costs(levels))
    assert sum(found.shares.values()) == pytest.approx(1)
    assert found.regret >= 0


def test_a_dear_machine_changes_nothing() -> None:
    """A way that never wins leaves all other odds as they are."""
    costs = _costs({"a": 1, "b": 1.2})
    before, after = odds("a", costs), odds("a", costs | {"dear": costs["a"] + 1000})
    assert after.shares == {**before.shares, "dear": 0.0}
    assert (after.regret, after.rivals) == (before.regret, before.rivals)


def test_equal_machines_share() -> None:
    """Two clouds with one accelerator at one price win in half of the scenarios each."""
    cost = _costs({"a": 1})["a"]
    found = odds("a", {"a": cost, "b": cost.copy()})
    assert found.shares == {"a": 0.5, "b": 0.5}
    assert found.ratios["b"] == (1.0, 1.0, 1.0)


def test_what_is_shared_cancels() -> None:
    """Costs known to a factor of ten, and to 5 % of each other: the cheaper is surely that."""
    rng = np.random.default_rng(2)
    shared = np.exp(1.4 * rng.standard_normal(DRAWS))
    own = np.exp(0.03 * rng.standard_normal((2, DRAWS)))
    found = odds("a", {"a": shared * own[0], "b": 1.3 * shared * own[1]})
    assert found.wins == 1.0
    assert found.rivals == ()
    assert odds_sentence(found) == "It costs least of all machines in 100 of 100 scenarios."


def test_a_price_scales_costs_and_nothing_else() -> None:
    """All prices twice as high leave odds, ratios and regret alone."""
    costs = _costs({"a": 1, "b": 1.5, "c": 3})
    twice = {name: 2 * cost for name, cost in costs.items()}
    assert odds("a", twice) == odds("a", costs)


def test_a_narrow_measurement_beats_a_prediction_as_often_as_its_draws_say() -> None:
    """Measured at 1.0, it is cheaper in every draw of a prediction that lies above."""
    rng = np.random.default_rng(3)
    drawn = 0.4 * rng.standard_normal(DRAWS)
    predicted, measured = _observed("predicted", drawn), _observed("measured")
    wide, narrow = Time.from_floats(0.6, 1.1, 2.0), Time.from_floats(0.999, 1.0, 1.001)
    costs = {
        "predicted": cost_draws(predicted, wide, _cost(0.6, 1.1, 2.0)),
        "measured": cost_draws(measured, narrow, _cost(0.999, 1.0, 1.001)),
    }
    expected = (1.1 * np.exp(drawn) > 1).mean()
    assert odds("measured", costs).wins == pytest.approx(expected, abs=0.01)


def test_plans_of_one_machine_share_the_time_that_is_drawn() -> None:
    """The ratio of two hourly plans of one measured machine is that of their prices."""
    time = Time.from_floats(8, 10, 13)
    costs = [cost_draws(_observed("a"), time, _cost(8 * p, 10 * p, 13 * p)) for p in (1.0, 2.5)]
    np.testing.assert_allclose(costs[1] / costs[0], 2.5)


def test_nine_of_ten_draws_lie_within_the_interval() -> None:
    """A measured interval is of 95 %; a time without one is drawn as it is."""
    time = Time.from_floats(8, 10, 13)
    inside = [8 <= 10 * np.exp(ratio) <= 13 for ratio in time_draws(_observed("a"), time)]
    assert np.mean(inside) == pytest.approx(0.95, abs=0.04)
    assert not time_draws(_observed("a"), Time.exact(Decimal(10))).any()


def test_a_bill_in_steps_is_followed_between_its_ends() -> None:
    """A minimum charge below the mean: no draw costs less than it."""
    time, cost = Time.from_floats(1, 2, 4), _cost(2, 2, 4)
    drawn = cost_draws(_observed("a", np.linspace(-0.6, 0.6, DRAWS)), time, cost)
    assert drawn.min() == pytest.approx(2, abs=1e-6)
    assert (np.diff(drawn) >= 0).all()


def test_another_observation_has_other_draws() -> None:
    """Two hosts with equal intervals are not one."""
    time = Time.from_floats(8, 10, 13)
    one, other = _observed("a"), replace(_observed("a"), batch_size=16)
    assert (time_draws(one, time) != time_draws(other, time)).any()
