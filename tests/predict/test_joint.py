"""Joint draws of predictions: each draw spreads as its interval, and machines are correlated."""

from __future__ import annotations

import numpy as np
import pytest

from epochcost.predict.joint import (
    NINE_OF_TEN,
    Draws,
    joint_draws,
    standard_normals,
)

# Two machines and a third equal to the second; most of the error is shared.
_COVARIANCE = np.array([[1.04, 1.0, 1.0], [1.0, 1.04, 1.04], [1.0, 1.04, 1.04]])
_FACTORS = np.full(3, 2 * NINE_OF_TEN)


def _drawn(seed: str = "a work") -> tuple[Draws, ...]:
    return tuple(joint_draws(_COVARIANCE, _FACTORS, seed))


def _values(seed: str = "a work") -> np.ndarray:
    return np.stack([draws.values for draws in _drawn(seed)], axis=1)


def test_each_rate_spreads_as_its_interval_says() -> None:
    """Nine of ten draws stay within the interval's factor times the standard deviation."""
    drawn = _values()
    half = _FACTORS * np.sqrt(np.diag(_COVARIANCE))
    assert (np.abs(drawn) <= half).mean(axis=0) == pytest.approx(0.9, abs=0.06)


def test_equal_machines_have_equal_draws() -> None:
    """Two machines with the same accelerator have the same draws."""
    drawn = _values()
    np.testing.assert_array_equal(drawn[:, 1], drawn[:, 2])


def test_draws_are_the_same_every_time() -> None:
    """A seed gives the same draws every time, and another seed gives other draws."""
    np.testing.assert_array_equal(_values(), _values())
    assert (_values() != _values("another")).any()


def test_draws_are_what_their_seed_and_weights_give() -> None:
    """The seed and the rounded weights of a prediction reproduce its draws."""
    for draws in _drawn():
        normals = standard_normals(draws.seed, len(draws.weights))
        np.testing.assert_allclose(normals @ np.array(draws.weights), draws.values, atol=1e-12)
        assert all(round(1000 * weight) / 1000 == weight for weight in draws.weights)


def test_no_time_is_shorter_than_its_bound() -> None:
    """``bounded`` shifts all draws and raises those below the least value to it, each time."""
    draws = _drawn()[0]
    once = draws.bounded(-0.25, -0.5)
    assert (once.values == -0.5).any()
    for bounded in (once, once.bounded(0.125, -0.25), once.bounded(0.25, -2)):
        expected = np.maximum(draws.values + bounded.shift, bounded.least)
        np.testing.assert_allclose(bounded.values, expected)


def test_normals_are_normal_and_independent() -> None:
    """Columns of near and distant seeds have normal moments and no correlation."""
    drawn = np.concatenate([standard_normals(seed, 8) for seed in (1, 10_000, 2**32 - 1)], axis=1)
    moments = [float((drawn**power).mean()) for power in (1, 2, 4)]
    assert moments == pytest.approx([0, 1, 3], abs=0.25)
    correlation = np.corrcoef(drawn.T) - np.eye(drawn.shape[1])
    assert np.abs(correlation).max() < 0.3
    np.testing.assert_array_equal(standard_normals(1, 8)[:, :3], standard_normals(1, 3))
