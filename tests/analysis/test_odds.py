"""Odds of being the cheapest: their sum, shared errors, and draws."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from epochcost.analysis.machines import Machine
from epochcost.analysis.observations import Evidence, Observation, Workload
from epochcost.analysis.odds import Odds, deviations, draws_along, odds, odds_sentence, time_draws
from epochcost.cost.estimate import Time
from epochcost.predict.joint import DRAWS, Draws, standard_normals

_WAYS = st.dictionaries(st.sampled_from("abcdef"), st.floats(0.01, 100), min_size=1, max_size=6)


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


def _ends(low: float, mean: float, high: float) -> list[Decimal]:
    return [Decimal(str(value)) for value in (low, mean, high)]


def _costs(levels: dict[str, float], spread: float = 0.5) -> dict[str, NDArray[np.float64]]:
    rng = np.random.default_rng(1)
    return {
        name: level * np.exp(spread * rng.standard_normal(DRAWS)) for name, level in levels.items()
    }


@given(_WAYS, st.floats(0, 1e6))
def test_a_dear_machine_changes_nothing(levels: dict[str, float], more: float) -> None:
    """A machine that is dearer in every draw changes no odds of other machines."""
    costs, choice = _costs(levels), next(iter(levels))
    before = odds(choice, costs)
    after = odds(choice, costs | {"dear": costs[choice] * 1.01 + more})
    assert after.shares == {**before.shares, "dear": 0.0}
    assert (after.regret, after.rivals) == (before.regret, before.rivals)


@given(_WAYS, st.integers(2, 5))
def test_equal_machines_share(levels: dict[str, float], copies: int) -> None:
    """Equal machines have equal odds, and their sum is the odds of one of them alone."""
    costs = _costs(levels)
    name, cost = next(iter(costs.items()))
    twins = {f"twin {at}": cost.copy() for at in range(copies - 1)}
    alone, shared = odds(name, costs), odds(name, costs | twins)
    assert all(shared.shares[twin] == pytest.approx(shared.wins) for twin in twins)
    assert shared.wins * copies == pytest.approx(alone.wins)
    assert all(shared.ratios[twin] == (1.0, 1.0) for twin in twins)


def test_free_ways_have_finite_ratios() -> None:
    """A free machine or API wins against one that costs, and shares with another free one."""
    costs = {"free": np.zeros(DRAWS), "gift": np.zeros(DRAWS), "paid": np.ones(DRAWS)}
    found = odds("free", costs)
    assert found.shares == {"free": 0.5, "gift": 0.5, "paid": 0.0}
    assert (found.regret, found.ratios["gift"]) == (0.0, (1.0, 1.0))
    assert all(map(math.isfinite, (*found.ratios["paid"], odds("paid", costs).regret)))


def test_what_is_shared_cancels() -> None:
    """If costs are uncertain by a factor of ten but their ratio by 5 %, the cheaper one wins."""
    rng = np.random.default_rng(2)
    shared = np.exp(1.4 * rng.standard_normal(DRAWS))
    spread = np.exp(0.03 * rng.standard_normal((2, DRAWS)))
    shares = odds("a", {"a": shared * spread[0], "b": 1.3 * shared * spread[1]})
    assert shares.wins == 1.0
    assert shares.rivals == ()
    assert odds_sentence(shares) == "It costs least of 2 machines in 100 of 100 scenarios."


@given(st.floats(0.5, 2.0), st.floats(0.05, 1.0), st.integers(0, 2**32 - 1))
def test_a_narrow_measurement_beats_a_prediction_as_often_as_its_draws_say(
    level: float, spread: float, seed: int
) -> None:
    """A measured cost of 1 is the cheapest in every draw with a predicted cost above 1."""
    drawn = spread * standard_normals(seed, 1)[:, 0]
    predicted, measured = _observed("predicted", drawn), _observed("measured")
    ends = [level * math.exp(end * spread) for end in (-1.645, 0, 1.645)]
    wide, narrow = Time.from_floats(*ends), Time.from_floats(0.9999, 1.0, 1.0001)
    costs = {
        "predicted": draws_along(predicted, wide, _ends(*ends)),
        "measured": draws_along(measured, narrow, _ends(0.9999, 1.0, 1.0001)),
    }
    expected = (level * np.exp(drawn) > 1).mean()
    assert odds("measured", costs).wins == pytest.approx(expected, abs=0.02)


def test_plans_of_one_machine_share_the_time_that_is_drawn() -> None:
    """In every draw, the costs of two hourly plans of a machine have the ratio of the prices."""
    time = Time.from_floats(8, 10, 13)
    costs = [draws_along(_observed("a"), time, _ends(8 * p, 10 * p, 13 * p)) for p in (1.0, 2.5)]
    np.testing.assert_allclose(costs[1] / costs[0], 2.5)


def test_nine_of_ten_draws_lie_within_the_interval() -> None:
    """95 % of draws lie within the interval of a measured time; an exact time has equal draws."""
    time = Time.from_floats(8, 10, 13)
    inside = [8 <= 10 * np.exp(ratio) <= 13 for ratio in time_draws(_observed("a"), time)]
    assert np.mean(inside) == pytest.approx(0.95, abs=0.04)
    assert not time_draws(_observed("a"), Time.exact(Decimal(10))).any()


def test_a_low_end_near_zero_is_no_bound() -> None:
    """A noisy time, of 273 and at most 580, is never a tenth of its mean."""
    noisy, firm = (Time(*_ends(low, 273, 580)) for low in (0.0001, 130))
    assert deviations(noisy) == pytest.approx((0.3845, 0.3845), abs=1e-3)
    assert deviations(firm) == pytest.approx((0.3785, 0.3845), abs=1e-3)
    assert np.exp(time_draws(_observed("noisy"), noisy)).min() > 0.1


def test_a_tie_is_no_loss() -> None:
    """If two ways cost the same, the sentence says so, and names no extra cost of 0 %."""
    tied = Odds("a", {"a": 0.5, "b": 0.5}, {}, {}, 0.001)
    dearer = Odds("a", {"a": 0.5, "b": 0.5}, {}, {}, 0.1)
    assert odds_sentence(tied) == (
        "It costs least of 2 machines in 50 of 100 scenarios; in the others, it costs about as "
        "much as the cheapest."
    )
    assert "others, it takes about as long as the fastest" in odds_sentence(tied, "time")
    assert "it costs 20 % more than the cheapest" in odds_sentence(dearer)
