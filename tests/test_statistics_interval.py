"""When two measured times may be called different."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcost.statistics.interval import FEWEST_ROUNDS, Bounded, ratio, time_change


def test_apart_and_large() -> None:
    """A large difference of separate intervals is a significant change."""
    found = time_change(Bounded(9.9, 10, 10.1), Bounded(11.9, 12, 12.1), rounds=FEWEST_ROUNDS)
    assert found.significant
    assert found.factor.low < 1.2 < found.factor.high


def test_apart_and_small() -> None:
    """A certain but small change, of 4.9 %, is not significant."""
    after = 10.49
    assert not time_change(
        Bounded(9.999, 10, 10.001), Bounded(after, after, after), rounds=3
    ).significant


def test_an_unbounded_time() -> None:
    """An interval that reaches down to zero gives no significant change."""
    assert not time_change(Bounded(0, 10, 30), Bounded(19, 20, 21), rounds=3).significant


def test_single_rounds() -> None:
    """Intervals of single processes give no significant change, however far apart they are."""
    slow, fast = Bounded(0.313, 0.391, 0.469), Bounded(0.058, 0.0658, 0.074)
    assert time_change(slow, fast, rounds=2).significant
    assert not time_change(slow, fast, rounds=1).significant


@given(st.floats(0.1, 10), st.floats(0.1, 10), st.floats(1e-4, 0.5), st.floats(1e-4, 0.5))
def test_the_interval_of_a_ratio_holds_it_and_turns_with_it(
    above: float, below: float, wide: float, wider: float
) -> None:
    """A ratio's interval is at least as wide as each side's alone, at most both together."""
    top = Bounded(above * (1 - wide), above, above * (1 + wide))
    under = Bounded(below * (1 - wider), below, below * (1 + wider))
    found = ratio(top, under)
    assert found.low < found.mean == above / below < found.high
    assert found.high >= max(top.high / below, above / under.low) * (1 - 1e-12)
    assert found.high <= top.high / under.low * (1 + 1e-12)
    turned = ratio(under, top)
    assert turned.low == pytest.approx(1 / found.high)
    assert turned.high == pytest.approx(1 / found.low)


def test_a_ratio_of_two_means_is_covered_as_often_as_it_says() -> None:
    """About 95 % of 2,000 intervals of a ratio of means contain the true ratio."""
    random = np.random.default_rng(6)
    z = 1.959964
    hits = 0
    for _ in range(2000):
        means = random.normal([2.0, 5.0], [0.04, 0.15])
        halves = z * np.array([0.04, 0.15])
        top, under = (
            Bounded(mean - half, mean, mean + half)
            for mean, half in zip(means, halves, strict=True)
        )
        found = ratio(top, under)
        hits += found.low <= 0.4 <= found.high
    assert 0.935 <= hits / 2000 <= 0.965
