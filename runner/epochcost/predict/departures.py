"""Learn with a Gaussian process how observed times differ from a formula for times, the law.

The departure of an observation is log(observed time / time by the law).

Sources: Rasmussen and Williams 2006, "Gaussian processes for machine learning", chapter 2;
Marquardt 1963 for ``fitted``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from epochcost.predict.process import (
    Calibration,
    Labels,
    Matrix,
    Vector,
    held_out,
    inverted,
    members,
    numbered,
)

RowT = TypeVar("RowT")
# A group of more rows counts as this number of rows.
_ROWS_THAT_COUNT = 25
_STEP = 1e-4
_ROUNDS = 60
_HIGHEST_DAMPING = 1e9
_CONVERGED = 1e-7


@dataclass(frozen=True, slots=True)
class Term:
    """A random part of departures with the standard deviation ``scale``; the parts are added up.

    Parts of two rows (observations or questions) are correlated only if their labels named in
    ``same`` are equal. ``near`` has pairs of a feature's name and a length scale. The more the rows
    differ in these features, the weaker the correlation.
    """

    scale: float
    same: tuple[str, ...] = ()
    near: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Traits:
    """Labels and features of n rows (``count``), each a sequence [n] that has a name."""

    count: int
    labels: Mapping[str, Sequence[Hashable]]
    features: Mapping[str, Vector]

    @classmethod
    def of(
        cls,
        rows: Sequence[RowT],
        labels: Mapping[str, Callable[[RowT], Hashable]],
        features: Mapping[str, Callable[[RowT], float]],
    ) -> Traits:
        """Compute the labels and features of ``rows`` with the functions in the two mappings."""
        return cls(
            len(rows),
            {name: [label(row) for row in rows] for name, label in labels.items()},
            {
                name: np.array([feature(row) for row in rows], dtype=np.float64)
                for name, feature in features.items()
            },
        )


def covariance(terms: Sequence[Term], rows: Traits, columns: Traits) -> Matrix:
    """Covariance [n, m] between the departures of ``rows`` and ``columns``, without noise."""
    codes = {
        name: numbered([*rows.labels[name], *columns.labels[name]])
        for name in {name for term in terms for name in term.same}
    }
    correlations = {
        near: _correlation_by_nearness(near, rows, columns)
        for near in {term.near for term in terms}
    }
    total: Matrix = np.zeros((rows.count, columns.count))
    for term in terms:
        part = term.scale**2 * correlations[term.near]
        if term.same:
            together = np.zeros(sum(total.shape), dtype=np.int64)
            for name in term.same:
                together = together * (codes[name].max(initial=0) + 1) + codes[name]
            part = part * (together[: len(total), None] == together[None, len(total) :])
        total += part
    return total


def _correlation_by_nearness(
    near: tuple[tuple[str, float], ...], rows: Traits, columns: Traits
) -> Matrix:
    """Correlation [n, m] by the distance of features; [1, 1] of 1 if ``near`` is empty."""
    if not near:
        return np.ones((1, 1))
    lengths = np.array([length for _, length in near])
    values = np.stack(
        [np.concatenate((rows.features[name], columns.features[name])) for name, _ in near]
    ).T
    points, places = np.unique(values / lengths, axis=0, return_inverse=True)
    squares = ((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=2)
    places = places.reshape(-1)
    result: Matrix = np.exp(-squares / 2)[np.ix_(places[: rows.count], places[rows.count :])]
    return result


class Departures:
    """Learn from the departures of n observations, and predict those of questions.

    ``noise`` is the standard deviation of the observed departures' errors: [n], or one number.
    """

    def __init__(
        self, terms: Sequence[Term], noise: float | Vector, traits: Traits, departures: Vector
    ) -> None:
        self._terms = tuple(terms)
        self._variance = np.broadcast_to(np.square(noise), departures.shape)
        self._traits = traits
        self._departures = departures

    @cached_property
    def _inverse(self) -> Matrix:
        matrix = covariance(self._terms, self._traits, self._traits)
        return inverted(matrix + np.diag(self._variance))

    @cached_property
    def _weighted(self) -> Vector:
        weighted: Vector = self._inverse @ self._departures
        return weighted

    def means(self, traits: Traits) -> Vector:
        """Predicted departures [m] of rows with ``traits``."""
        means: Vector = covariance(self._terms, traits, self._traits) @ self._weighted
        return means

    def predicted(self, traits: Traits) -> tuple[Vector, Matrix]:
        """Predicted departures [m] of rows with ``traits``, and the errors' covariance [m, m]."""
        shared = covariance(self._terms, traits, self._traits)
        weights = shared @ self._inverse
        prior = covariance(self._terms, traits, traits)
        return weights @ self._departures, prior - weights @ shared.T

    def calibration(self, groups: Labels, features: Matrix) -> Calibration:
        """Predict each group of observations from all other groups, and collect the errors.

        ``groups`` [n] has the number of each observation's group, ``features`` [n, k] its features.
        """
        deviations, weights = np.empty_like(self._departures), np.empty_like(self._departures)
        count = 0
        for rows, errors, spread in held_out(self._inverse, self._departures, members(groups)):
            deviations[rows] = np.abs(errors) / np.sqrt(np.diag(spread))
            weights[rows] = min(len(rows), _ROWS_THAT_COUNT) / len(rows)
            count += 1
        return Calibration(deviations, weights, features, count)


def fitted(
    law: Callable[[Vector], Vector],
    observed: Vector,
    start: Vector,
    deviations: Vector,
    softness: float = 0.2,
    weights: Vector | None = None,
) -> Vector:
    """Fit the parameters [k] of ``law`` so that its values [n] are close to ``observed`` [n].

    Parameters and values are logarithms. ``start`` [k] and ``deviations`` [k] are the means and
    standard deviations of the parameters' priors. Residuals far above ``softness`` count linearly.
    ``weights`` [n] are 1 by default. For an array [k, m, 1], ``law`` must return values [m, n].
    """
    parameters, damping = start.copy(), 1e-2
    counts = np.ones_like(observed) if weights is None else weights

    def loss_of(trial: Vector) -> float:
        residual, departures = law(trial) - observed, (trial - start) / deviations
        soft = 2 * softness**2 * (counts * (np.sqrt(1 + (residual / softness) ** 2) - 1)).sum()
        return float(soft + softness**2 * (departures**2).sum())

    loss = loss_of(parameters)
    for _ in range(_ROUNDS):
        residual = law(parameters) - observed
        counted = counts / np.sqrt(1 + (residual / softness) ** 2)
        slopes = _derivatives(law, parameters, residual + observed)
        curvature = slopes.T @ (counted[:, None] * slopes) + softness**2 * np.diag(deviations**-2.0)
        downhill = slopes.T @ (counted * residual)
        downhill += softness**2 * (parameters - start) / deviations**2
        while damping < _HIGHEST_DAMPING:
            damped = curvature + damping * np.diag(np.diag(curvature))
            trial = parameters - np.linalg.solve(damped, downhill)
            trial_loss = loss_of(trial)
            if trial_loss <= loss:
                break
            damping *= 10
        else:
            return parameters
        gain, parameters, loss, damping = loss - trial_loss, trial, trial_loss, damping / 10
        if gain <= _CONVERGED * loss:
            return parameters
    return parameters


def _derivatives(law: Callable[[Vector], Vector], parameters: Vector, law_value: Vector) -> Matrix:
    """Derivatives [n, k] of ``law`` at ``parameters`` [k], where its value is ``law_value`` [n]."""
    moved = parameters[:, None] + _STEP * np.eye(len(parameters))
    derivatives: Matrix = (law(moved[:, :, None]) - law_value).T / _STEP
    return derivatives
