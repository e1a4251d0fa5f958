"""Departures of rows from a law: shared terms, left-out groups, calibration and the fit."""

from collections.abc import Iterable

import numpy as np
import pytest

from epochcost.predict.departures import Departures, Term, Traits, covariance, fitted
from epochcost.predict.process import numbered

TERMS = (Term(0.3, ("chip",)), Term(0.2, ("software",), (("size", 1.0),)))
NOISE = 0.05


def _traits(rows: Iterable[int]) -> Traits:
    return Traits.of(
        list(rows),
        {"chip": lambda row: row % 7, "software": lambda row: ("vLLM", row % 2)},
        {"size": lambda row: float(row % 5)},
    )


def _drawn(traits: Traits, seed: int) -> np.ndarray:
    count = len(traits.features["size"])
    spread = covariance(TERMS, traits, traits) + NOISE**2 * np.eye(count)
    return np.random.default_rng(seed).multivariate_normal(np.zeros(count), spread)


def test_covariance_is_that_of_the_shared_labels_and_near_features() -> None:
    """Rows with equal labels share a term, smaller for distant features."""
    traits = _traits(range(10))
    spread = covariance(TERMS, traits, traits)
    assert spread[0, 7] == pytest.approx(0.3**2)
    assert spread[0, 2] == pytest.approx(0.2**2 * np.exp(-2.0))
    assert spread[0, 1] == 0.0
    assert spread[3, 3] == pytest.approx(0.3**2 + 0.2**2)


def test_calibration_has_the_errors_of_fits_without_each_group() -> None:
    """Errors are in standard deviations of a prediction by the other groups, noise included."""
    traits = _traits(range(35))
    departures = _drawn(traits, 1)
    groups = numbered([row % 7 for row in range(35)])
    process = Departures(TERMS, NOISE, traits, departures)
    calibration = process.calibration(groups, np.zeros((35, 1)))
    rows, rest = groups == 3, groups != 3
    alone = Departures(TERMS, NOISE, _traits(np.flatnonzero(rest)), departures[rest])
    mean, spread = alone.predicted(_traits(np.flatnonzero(rows)))
    expected = np.abs(departures[rows] - mean) / np.sqrt(np.diag(spread) + NOISE**2)
    assert calibration.deviations[rows] == pytest.approx(expected)
    assert calibration.groups == 7


def test_calibration_of_a_process_that_is_right_keeps_its_ranges() -> None:
    """If errors are normal, a 90 % range is 1.645 standard deviations wide on each side."""
    factors = []
    for seed in range(20):
        traits = _traits(range(70))
        process = Departures(TERMS, NOISE, traits, _drawn(traits, seed))
        groups = numbered(list(range(70)))
        factors.append(process.calibration(groups, np.zeros((70, 1))).factor(np.zeros(1)))
    assert np.median(factors) == pytest.approx(1.645, rel=0.15)


def test_calibration_counts_a_group_of_many_rows_more_than_one_of_two() -> None:
    """A group counts as its rows, at most 25."""
    traits = _traits(range(200))
    calibration = Departures(TERMS, NOISE, traits, _drawn(traits, 1)).calibration(
        numbered([min(row // 2, 1) for row in range(200)]), np.zeros((200, 1))
    )
    assert calibration.weights[:2].sum() == pytest.approx(2)
    assert calibration.weights[2:].sum() == pytest.approx(25)


def test_a_law_is_fitted_to_what_it_made_in_spite_of_rows_that_are_wrong() -> None:
    """The fit recovers the parameters although one row in ten is three times too high."""
    place = np.linspace(0.1, 3.0, 60)

    def law(parameters: np.ndarray) -> np.ndarray:
        share, constant = np.exp(parameters)
        return np.log(place / share + constant)

    truth = np.log([0.7, 0.2])
    observed = law(truth)
    observed[::10] += np.log(3.0)
    result = fitted(law, observed, np.log([0.3, 1.0]), np.array([3.0, 3.0]), softness=0.05)
    assert result == pytest.approx(truth, abs=0.05)


def test_a_parameter_of_which_rows_say_nothing_stays_at_its_start() -> None:
    """A parameter without effect on the rows keeps its prior value."""
    observed = np.full(5, 2.0)
    result = fitted(
        lambda parameters: parameters[0] + np.zeros(5), observed, np.zeros(2), np.full(2, 5.0)
    )
    assert result == pytest.approx([2.0, 0.0], abs=0.01)
