"""Draws of predictions: together as wide as intervals say, and less apart than alone."""

from __future__ import annotations

import numpy as np
import pytest

from epochcost.predict.joint import NINE_OF_TEN, RATIO_SCALE, joint_draws

# Two machines and a third that is the second under another name; most of the error is shared.
_COVARIANCE = np.array([[1.04, 1.0, 1.0], [1.0, 1.04, 1.04], [1.0, 1.04, 1.04]])
_FACTORS = np.full(3, 2 * NINE_OF_TEN)


def test_each_rate_spreads_as_its_interval_says() -> None:
    """Nine of ten draws stay within the factor times the standard deviation."""
    drawn = joint_draws(_COVARIANCE, _FACTORS, "a work")
    half = _FACTORS * np.sqrt(np.diag(_COVARIANCE))
    assert (np.abs(drawn) <= half).mean(axis=0) == pytest.approx(0.9, abs=0.06)


def test_ratios_spread_by_what_is_not_shared() -> None:
    """The difference of two rates has the process's deviation, scaled for ratios."""
    drawn = joint_draws(_COVARIANCE, _FACTORS, "a work")
    expected = RATIO_SCALE * np.sqrt(2 * 1.04 - 2 * 1.0)
    assert np.std(drawn[:, 0] - drawn[:, 1]) == pytest.approx(expected, rel=0.15)


def test_equal_machines_have_equal_draws() -> None:
    """One accelerator sold by two clouds has one rate."""
    drawn = joint_draws(_COVARIANCE, _FACTORS, "a work")
    np.testing.assert_allclose(drawn[:, 1], drawn[:, 2], atol=1e-3)


def test_draws_are_the_same_every_time() -> None:
    """The same work has the same draws in every process; another work has others."""
    one, again = (joint_draws(_COVARIANCE, _FACTORS, "a work") for _ in range(2))
    np.testing.assert_array_equal(one, again)
    assert (one != joint_draws(_COVARIANCE, _FACTORS, "another")).any()


def test_a_machine_alone_has_a_draw() -> None:
    """One row has nothing to be compared with, and its interval all the same."""
    drawn = joint_draws(np.array([[0.25]]), np.array([NINE_OF_TEN]), "a work")
    assert drawn.shape == (256, 1)
    assert np.std(drawn) == pytest.approx(0.5, rel=0.15)
