"""When a learning curve is stable: from which step on it is near its limit, and how surely.

A stated rule in the place of eyes. The curve since the last drop of the learning rate is taken to
be L - A exp(-t / τ) or L - A t^-β with noise, two of the families that learning curves are
extrapolated by (Domhan, Springenberg & Hutter, IJCAI 2015; Viering & Loog, "The Shape of Learning
Curves", 2023, arXiv 2103.10948). For each shape (τ or β) L and A follow by least squares (Golub &
Pereyra 1973); shapes and families are weighted by their likelihood, so that what is not known
widens the interval. A curve that is of neither family, which neighbouring residuals of one sign
tell, is looked at only as far back as it is of one. ``benchmarks/plateau_rule.py`` says how often
the rule is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from epochcost.results.trainings import Point, Stable

Floats = NDArray[np.float64]
_FEWEST_POINTS = 12
_MOST_BINS = 160
_SHAPES, _REFINEMENTS = 60, 2
# Natural logarithms of likelihood below the best that still count.
_NEGLIGIBLE = 10.0
_SHALLOWEST, _STEEPEST = 0.1, 5.0
_MOST_EXPONENT = 50.0
_INTERVAL = (0.05, 0.5, 0.95)
_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(7)
# Half the interval over the step: what counts as known.
_KNOWN = 0.2
_CORRELATED, _SMALL = 0.3, 0.2
_KEPT_SHARE = 0.75
_SAME_RATE, _DROP = 1.02, 1.5


def find_stable(curve: Sequence[Point], within: float) -> Stable | None:
    """Where the curve of accuracies, or else of losses, is or will be stable; None: too few points.

    ``within`` is in the unit of what is measured: 0.005 is half a point of accuracy.
    """
    start = last_drop(curve)
    while True:
        drop_step = curve[start - 1].step if start else 0
        points = [point for point in curve[start:] if point.step > drop_step]
        if len(points) < _FEWEST_POINTS:
            return None
        steps = np.array([point.step - drop_step for point in points], np.float64)
        fit = _fitted(steps, _heights(points), within)
        earlier = last_drop(curve[:start])
        before = _heights(curve[min(start - 1, start - (start - earlier) // 4) : start])
        followed = bool(start) and abs(float(before.mean()) - fit.limit) > within
        if followed or not start:
            break
        start = earlier  # that drop changed nothing: the curve was there before
    low, middle, high = (drop_step + step for step in fit.steps)
    return Stable(
        within=within,
        limit=fit.limit if points[0].accuracy is not None else -fit.limit,
        step=middle,
        low_step=low,
        high_step=high,
        after_drop=drop_step if followed else None,
    )


def is_known(stable: Stable, step: int) -> bool:
    """Whether the curve has surely got there, and where that was is known to a fifth."""
    width = (stable.high_step - stable.low_step) / 2
    return step >= stable.high_step and width <= _KNOWN * stable.step


def last_drop(curve: Sequence[Point]) -> int:
    """The index of the first evaluation after the last drop of a rate that is else constant; or 0.

    A rate that falls all the time, as a cosine, has no drops.
    """
    rates = [point.learning_rate for point in curve]
    for at in range(len(rates) - 1, 1, -1):
        steady = rates[at - 2] <= rates[at - 1] * _SAME_RATE
        steady &= at + 1 == len(rates) or rates[at] <= rates[at + 1] * _SAME_RATE
        if steady and rates[at] * _DROP < rates[at - 1]:
            return at
    return 0


@dataclass(frozen=True)
class _Fit:
    """Low end, middle and high end of the step, and the limit."""

    steps: tuple[float, float, float]
    limit: float


@dataclass(frozen=True)
class _Binned:
    """Means of neighbouring points; ``within`` is what their squares lose by it."""

    first: Floats
    last: Floats
    heights: Floats
    counts: Floats
    within: float


def _heights(points: Sequence[Point]) -> Floats:
    """Higher is better."""
    return np.array([-each.loss if each.accuracy is None else each.accuracy for each in points])


def _fitted(steps: Floats, heights: Floats, within: float) -> _Fit:
    """The fit of as much of the end of the curve as is of one of the families."""
    while True:
        fit, residuals = _fit(steps, heights, within)
        kept = round(len(steps) * _KEPT_SHARE)
        if kept < _FEWEST_POINTS or not _is_off(residuals, within):
            return fit
        steps, heights = steps[-kept:], heights[-kept:]


def _is_off(residuals: Floats, within: float) -> bool:
    """Whether neighbours lie on one side of the fit, by more than is of no account."""
    total, count = float(residuals @ residuals), len(residuals)
    neighbours = float(residuals[1:] @ residuals[:-1])
    correlated = neighbours > (_CORRELATED + 2 / count**0.5) * total
    return correlated and total > count * (_SMALL * within) ** 2


def _fit(steps: Floats, heights: Floats, within: float) -> tuple[_Fit, Floats]:
    bins, free = _bin(steps, heights), len(steps) - 3
    fine = [
        np.geomspace(steps[-1] / 500, 3 * steps[-1], _SHAPES),
        np.geomspace(_SHALLOWEST, _STEEPEST, _SHAPES),
    ]
    first = steps[0]
    for _ in range(_REFINEMENTS):
        solved = [_solved(bins, first, family, fine[family]) for family in (0, 1)]
        fine = [
            _around(shapes, -free / 2 * np.log(squares / squares.min()))
            for shapes, (*_, squares) in zip(fine, solved, strict=True)
        ]
    solved = [_solved(bins, first, family, fine[family]) for family in (0, 1)]
    best = min(float(squares.min()) for *_, squares in solved)
    found, weights, limits = [], [], []
    for family, (limit, depth, spread, squares) in enumerate(solved):
        likelihood = np.exp(-free / 2 * np.log(squares / best))
        likelihood *= np.log(fine[family][1] / fine[family][0])
        depths = depth[:, None] + np.sqrt(best / free / spread)[:, None] * _NODES
        found.append(_reached(first, family, fine[family][:, None], depths / within))
        weights.append(likelihood[:, None] * _NODE_WEIGHTS)
        limits.append((likelihood, limit))
    middle = sum(float(each @ limit) for each, limit in limits)
    whole = sum(float(each.sum()) for each, _ in limits)
    family = int(solved[1][3].min() < solved[0][3].min())
    at = int(solved[family][3].argmin())
    shape = fine[family][at : at + 1]
    curve = solved[family][0][at] - solved[family][1][at] * _basis(first, steps, family, shape)[0]
    return _Fit(_quantiles(found, weights), middle / whole), heights - curve


def _bin(steps: Floats, heights: Floats) -> _Binned:
    """At most so many bins, geometric in the step: a curve of thousands of points costs no more."""
    edges = np.searchsorted(steps, np.geomspace(steps[0], steps[-1], _MOST_BINS))
    starts = np.unique(edges) if len(steps) > _MOST_BINS else np.arange(len(steps))
    counts = np.diff(np.append(starts, len(steps))).astype(np.float64)
    means = np.add.reduceat(heights, starts) / counts
    ends = np.append(starts[1:], len(steps)) - 1
    lost = float(heights @ heights - (means * means) @ counts)
    return _Binned(steps[starts], steps[ends], means, counts, max(0.0, lost))


def _basis(first: float, steps: Floats, family: int, shapes: Floats) -> Floats:
    """What is left of the way at each step, [shapes, steps]; 1 at the first."""
    if family == 0:
        return np.exp(-(steps - first) / shapes[:, None])
    return np.asarray((steps / first) ** -shapes[:, None])


def _solved(
    bins: _Binned, first: float, family: int, shapes: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """For each shape the limit, the depth below it at the first step, its weight, the squares."""
    middle, half = (bins.first + bins.last) / 2, (bins.last - bins.first) / 2 / 3**0.5
    basis = sum(_basis(first, middle + side * half, family, shapes) / 2 for side in (-1, 1))
    count = bins.counts.sum()
    left, height = (basis @ bins.counts) / count, float(bins.heights @ bins.counts) / count
    apart, above = basis - left[:, None], bins.heights - height
    spread = np.maximum((apart * apart) @ bins.counts, np.finfo(np.float64).tiny)
    product = apart @ (bins.counts * above)
    squares = float((above * above) @ bins.counts) - product**2 / spread + bins.within
    depth = -product / spread
    floor = np.finfo(np.float64).eps * max(1.0, float(bins.counts @ bins.heights**2))
    return height + depth * left, depth, spread, np.maximum(squares, floor)


def _around(shapes: Floats, likelihood: Floats) -> Floats:
    """A finer grid where the likelihood is not negligible beside the family's best."""
    near = np.flatnonzero(likelihood > likelihood.max() - _NEGLIGIBLE)
    low, high = max(near[0] - 1, 0), min(near[-1] + 1, len(shapes) - 1)
    return np.geomspace(shapes[low], shapes[high], _SHAPES)


def _reached(first: float, family: int, shapes: Floats, depths: Floats) -> Floats:
    """The step at which so many times the tolerance are left as one; the first where it is less."""
    way = np.log(np.maximum(depths, 1.0))
    if family == 0:
        return np.asarray(first + shapes * way)
    return np.asarray(first * np.exp(np.minimum(way / shapes, _MOST_EXPONENT)))


def _quantiles(found: list[Floats], weights: list[Floats]) -> tuple[float, float, float]:
    steps = np.concatenate([each.ravel() for each in found])
    order = np.argsort(steps)
    total = np.cumsum(np.concatenate([each.ravel() for each in weights])[order])
    places = np.searchsorted(total, np.array(_INTERVAL) * total[-1])
    low, middle, high = (float(steps[order][place]) for place in places)
    return low, middle, high
