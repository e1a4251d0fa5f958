"""A Gaussian process over what a physical law leaves: departures of logarithms, by declared terms.

A term is a departure that rows share whose labels are equal, fading with the distance of their
features: what one chip does better on every model, or one software on small ones. The laws, their
rows and the choice of terms are left to the callers; the process of published rates of graphs,
whose levels no law gives, is that of ``process``.

Rasmussen and Williams 2006, "Gaussian processes for machine learning", chapter 2; whole groups left
out in closed form as in ``process``. Laws are fitted by Levenberg and Marquardt's method (Marquardt
1963) under a loss that grows as the error's size beyond ``softness``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from epochcost.predict.process import Calibration, Labels, Matrix, Vector, inverted

RowT = TypeVar("RowT")
# A group of many rows is one group: so many of its rows count.
_ROWS_THAT_COUNT = 25
_STEP = 1e-4
_ROUNDS = 60
_HIGHEST_DAMPING = 1e9
_CONVERGED = 1e-7


@dataclass(frozen=True, slots=True)
class Term:
    """A departure of standard deviation ``scale``, shared by rows whose ``same`` labels all agree.

    It fades with the distance of each feature in ``near``, whose length stands beside it.
    """

    scale: float
    same: tuple[str, ...] = ()
    near: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Traits:
    """Labels and features of n rows, each an array [n] by its name."""

    labels: Mapping[str, NDArray[np.object_]]
    features: Mapping[str, Vector]

    @classmethod
    def of(
        cls,
        rows: Sequence[RowT],
        labels: Mapping[str, Callable[[RowT], Hashable]],
        features: Mapping[str, Callable[[RowT], float]],
    ) -> Traits:
        """The traits of rows by a function for each label and feature."""
        return cls(
            {name: _objects([label(row) for row in rows]) for name, label in labels.items()},
            {
                name: np.array([feature(row) for row in rows], dtype=np.float64)
                for name, feature in features.items()
            },
        )

    def rows(self, chosen: NDArray[np.bool_] | Labels) -> Traits:
        """The chosen rows only."""
        return Traits(
            {name: values[chosen] for name, values in self.labels.items()},
            {name: values[chosen] for name, values in self.features.items()},
        )


def covariance(terms: Sequence[Term], rows: Traits, columns: Traits) -> Matrix:
    """Covariance of the departures of two sets of rows [n, m], without noise."""
    codes = {
        name: _codes(rows.labels[name], columns.labels[name])
        for name in {name for term in terms for name in term.same}
    }
    fading = {near: _fading(near, rows, columns) for near in {term.near for term in terms}}
    total: Matrix = np.zeros((_length(rows), _length(columns)))
    for term in terms:
        part = term.scale**2 * fading[term.near]
        if term.same:
            together = np.zeros(sum(total.shape), dtype=np.int64)
            for name in term.same:
                together = together * (codes[name].max() + 1) + codes[name]
            part = part * (together[: len(total), None] == together[None, len(total) :])
        total += part
    return total


def _fading(near: tuple[tuple[str, float], ...], rows: Traits, columns: Traits) -> Matrix:
    """How departures fade with the distances of features [n, m], or [1, 1] without any."""
    if not near:
        return np.ones((1, 1))
    lengths = np.array([length for _, length in near])
    values = np.stack(
        [np.concatenate((rows.features[name], columns.features[name])) for name, _ in near]
    ).T
    points, places = np.unique(values / lengths, axis=0, return_inverse=True)
    squares = ((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=2)
    places = places.reshape(-1)
    count = _length(rows)
    result: Matrix = np.exp(-squares / 2)[np.ix_(places[:count], places[count:])]
    return result


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Departures [n] of rows from what all other groups say, and their standard deviations [n]."""

    errors: Vector
    deviations: Vector


class Departures:
    """What rows depart from their law by [n], from which those of other rows are predicted.

    ``noise`` is the standard deviation of each row by itself, of all [n] or of every one the same.
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
        own = covariance(self._terms, self._traits, self._traits)
        return inverted(own + np.diag(self._variance))

    def predicted(self, traits: Traits) -> tuple[Vector, Matrix]:
        """Departures of other rows [m], and the covariance of what is not known of them [m, m]."""
        shared = covariance(self._terms, traits, self._traits)
        weights = shared @ self._inverse
        prior = covariance(self._terms, traits, traits)
        return weights @ self._departures, prior - weights @ shared.T

    def left_out(self, groups: Labels) -> LeftOut:
        """Each group of rows predicted from all others, noise of the rows included."""
        weighted = self._inverse @ self._departures
        errors, deviations = np.empty_like(weighted), np.empty_like(weighted)
        for rows in members(groups):
            within = inverted(self._inverse[np.ix_(rows, rows)])
            errors[rows] = within @ weighted[rows]
            deviations[rows] = np.sqrt(np.diag(within))
        return LeftOut(errors, deviations)

    def calibration(self, groups: Labels, features: Matrix) -> Calibration:
        """Errors of groups that were left out, by which ranges are widened or narrowed.

        ``features`` [n, k] tell which rows are like the one in question.
        """
        left_out = self.left_out(groups)
        weights, count = np.empty_like(left_out.errors), 0
        for rows in members(groups):
            weights[rows] = min(1.0, _ROWS_THAT_COUNT / len(rows)) / len(rows)
            count += 1
        return Calibration(np.abs(left_out.errors) / left_out.deviations, weights, features, count)


def members(groups: Labels) -> Iterator[Labels]:
    """The rows of each group."""
    for group in np.unique(groups):
        yield np.flatnonzero(groups == group)


def numbered(values: Sequence[Hashable]) -> Labels:
    """Number values in the order in which they first occur [n]."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(value, len(numbers)) for value in values], dtype=np.int64)


def fitted(
    law: Callable[[Vector], Vector],
    observed: Vector,
    start: Vector,
    deviations: Vector,
    softness: float = 0.2,
    weights: Vector | None = None,
) -> Vector:
    """Fit the parameters of a law to what was observed [n], both as logarithms.

    ``weights`` [n] say how much each observation counts, 1 unless given.

    ``start`` [k] is what the parameters are expected to be within ``deviations`` [k], so that one
    of which the rows say nothing stays there.
    """
    parameters, damping = start.copy(), 1e-2
    counts = np.ones_like(observed) if weights is None else weights
    loss = _loss(law(parameters) - observed, counts, (parameters - start) / deviations, softness)
    for _ in range(_ROUNDS):
        residual = law(parameters) - observed
        counted = counts / np.sqrt(1 + (residual / softness) ** 2)
        slopes = _slopes(law, parameters, residual + observed)
        curvature = slopes.T @ (counted[:, None] * slopes) + softness**2 * np.diag(deviations**-2.0)
        downhill = slopes.T @ (counted * residual)
        downhill += softness**2 * (parameters - start) / deviations**2
        while damping < _HIGHEST_DAMPING:
            damped = curvature + damping * np.diag(np.diag(curvature))
            trial = parameters - np.linalg.solve(damped, downhill)
            departures = (trial - start) / deviations
            trial_loss = _loss(law(trial) - observed, counts, departures, softness)
            if trial_loss <= loss:
                break
            damping *= 10
        else:
            return parameters
        gain, parameters, loss, damping = loss - trial_loss, trial, trial_loss, damping / 10
        if gain <= _CONVERGED * loss:
            return parameters
    return parameters


def _loss(residual: Vector, counts: Vector, departures: Vector, softness: float) -> float:
    """The soft sum of squares of residuals, plus that of the parameters' own departures."""
    soft = 2 * softness**2 * (counts * (np.sqrt(1 + (residual / softness) ** 2) - 1)).sum()
    return float(soft + softness**2 * (departures**2).sum())


def _slopes(law: Callable[[Vector], Vector], parameters: Vector, level: Vector) -> Matrix:
    """Derivatives of a law with regard to each parameter [n, k]."""
    columns = []
    for at in range(len(parameters)):
        moved = parameters.copy()
        moved[at] += _STEP
        columns.append((law(moved) - level) / _STEP)
    return np.stack(columns, axis=1)


def _objects(values: Sequence[Hashable]) -> NDArray[np.object_]:
    """An array of values as they are: tuples among them would become columns."""
    result = np.empty(len(values), dtype=np.object_)
    result[:] = values
    return result


def _codes(rows: NDArray[np.object_], columns: NDArray[np.object_]) -> Labels:
    """Numbers of the values of rows and, after them, of columns."""
    return numbered([*rows, *columns])


def _length(traits: Traits) -> int:
    return len(next(iter((*traits.labels.values(), *traits.features.values()))))
