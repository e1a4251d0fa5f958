"""The Gaussian process over rows of rates: its leave-out errors and its covariance."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from epochcost.predict.design import designed
from epochcost.predict.learnt import placed
from epochcost.predict.process import (
    POOLED,
    Design,
    Scales,
    bordered_inverse,
    calibrate,
    centred_departures,
    covariance,
    held_out,
    inverted,
    members,
    with_noise,
)
from epochcost.predict.rates import read_rates
from predict.tables import FACTS, KNOWN, MODELS, rows, write


@pytest.fixture
def design(tmp_path: Path) -> Design:
    """The synthetic table as arrays."""
    table = read_rates(write(tmp_path / "t.csv", rows()))
    return designed(placed(table, KNOWN, {}), KNOWN)


def test_rows_left_out_in_closed_form_are_those_of_a_process_without_them(design: Design):
    """Left-out mean and covariance equal the posterior given the other rows."""
    scales = Scales()
    inverse = inverted(with_noise(design, scales))
    groups = held_out(inverse, centred_departures(design)[0], members(design.group))
    _, errors, spread = list(groups)[3]
    inside = design.group == 3
    matrix = covariance(design, design, scales) + scales.noise**2 * np.eye(len(inside))
    truth = design.rate - design.roofline
    truth = truth - truth.mean()
    gain = np.linalg.solve(matrix[np.ix_(~inside, ~inside)], matrix[np.ix_(~inside, inside)]).T
    mean = gain @ truth[~inside]
    remaining = matrix[np.ix_(inside, inside)] - gain @ matrix[np.ix_(~inside, inside)]
    np.testing.assert_allclose(errors, truth[inside] - mean, atol=1e-8)
    np.testing.assert_allclose(spread, remaining, atol=1e-8)


def test_a_device_that_no_other_rate_predicts_does_not_calibrate(design: Design):
    """A device with only editions of its own, and no graph, adds no errors and no group."""
    edition = np.where(design.group == 3, design.edition + 100, design.edition)
    inverse = inverted(with_noise(design, POOLED))
    calibration = calibrate(replace(design, edition=edition), inverse, design.group)
    assert calibration.groups == len(FACTS) - 1
    assert len(calibration.deviations) == (len(FACTS) - 1) * len(MODELS)


@pytest.mark.parametrize("scales", [Scales(), POOLED])
def test_the_covariance_is_one(design: Design, scales: Scales):
    """The covariance is symmetric and positive semidefinite, with and without graph features."""
    graphs = np.random.default_rng(0).normal(size=design.work_features.shape)
    graphs[::3] = np.nan
    for variant in (design, replace(design, work_features=graphs)):
        matrix = covariance(variant, variant, scales)
        np.testing.assert_allclose(matrix, matrix.T)
        assert np.linalg.eigvalsh(matrix).min() > -1e-9


@pytest.mark.parametrize("known", [0, 5, -1])
def test_a_bordered_inverse_is_the_inverse(design: Design, known: int):
    """Rows that are added to an inverse give the inverse of the matrix of all rows."""
    matrix = with_noise(design, Scales())
    known %= len(matrix) + 1
    bordered = bordered_inverse(inverted(matrix[:known, :known]), matrix[known:])
    np.testing.assert_allclose(bordered, inverted(matrix), rtol=1e-6, atol=1e-6)


def test_the_covariance_of_many_rows_is_that_of_each_row(design: Design):
    """A matrix of more rows than are computed at once has the same rows."""
    many = design.rows(np.resize(np.arange(len(design.rate)), 150))
    matrix = covariance(many, design, POOLED)
    expected = covariance(design, design, POOLED)
    np.testing.assert_allclose(matrix, np.resize(expected, matrix.shape))
