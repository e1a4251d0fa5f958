"""The ratio of two means has an interval that holds what it promises."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcost.statistics import Bounded, ratio


@given(st.floats(0.1, 10), st.floats(0.1, 10), st.floats(1e-4, 0.5), st.floats(1e-4, 0.5))
def test_the_interval_of_a_ratio_holds_it_and_turns_with_it(
    above: float, below: float, wide: float, wider: float
) -> None:
    """Its ends are no nearer than either side alone would have them, no farther than both added."""
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
    """Of 2,000 pairs of means known to 2 and 3 %, about 95 % have the true ratio inside."""
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


def test_an_end_at_nothing_bounds_no_ratio() -> None:
    """Two scattered samples say that a time is below something, and nothing more."""
    unbounded, sure = Bounded(0, 1, 2), Bounded(1, 2, 4)
    below = ratio(unbounded, sure)
    assert (below.low, below.mean) == (0, 0.5)
    assert 1 < below.high < 2
    assert ratio(sure, unbounded).high == math.inf
