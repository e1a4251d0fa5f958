"""A Gaussian process over logarithms of rates: which differences between machines carry over.

The logarithm of a rate is a level of its work, plus the half of log(peak · bandwidth) that a
roofline would give, plus departures: those that all works share (by the device's features), those
of one model, and those of one device or one machine's count. Each has a scale. What is left out can
be predicted in closed form (Sundararajan and Keerthi 2001, "Predictive approaches for choosing
hyperparameters in Gaussian processes", for single points; here for whole groups), which is what
scores a set of scales and what calibrates intervals.

Rasmussen and Williams 2006, "Gaussian processes for machine learning", chapters 2 and 4. The rows
and their features are made by ``design``; this module knows arrays only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Labels = NDArray[np.int64]

# Rows of one group say little more than so many of them: a device with 250 rows is one device.
_ROWS_THAT_COUNT = 25
# Degrees of freedom of the Student t by which scales are scored, so that one device does not rule.
_FREEDOM = 20


@dataclass(frozen=True, slots=True)
class Design:
    """Rows as arrays of one length n: ``rate`` is the logarithm of a rate per device.

    ``device_features`` is [n, 4], centred: logarithms of peak, bandwidth, cache and power;
    ``work_features`` [n, j], NaN where a work's graph is not known. The labels number works (one
    model under one setting, batch included), settings (model and software), models in one edition
    of a source, models with their mode, models, software, devices, groups of devices that are one
    under every form, and makers' generations. ``count`` is the logarithm of the devices in the
    machine, ``batch`` that of the batch, 0 where none is given.
    """

    rate: Vector
    device_features: Matrix
    work_features: Matrix
    work: Labels
    setting: Labels
    edition: Labels
    model_mode: Labels
    model: Labels
    software: Labels
    device: Labels
    group: Labels
    generation: Labels
    count: Vector
    batch: Vector

    def rows(self, chosen: NDArray[np.bool_] | Labels) -> Design:
        """The chosen rows only."""
        return Design(*(getattr(self, name)[chosen] for name in self.__slots__))


@dataclass(frozen=True, slots=True)
class Scales:
    """Standard deviations of the logarithm of a rate by what it departs for, and lengths.

    ``cache`` and ``power`` weigh the device's third and fourth feature against the first two.
    """

    level: float = 6.0
    graph_level: float = 2.0
    setting: float = 0.1
    batch: float = 0.1
    batch_length: float = 2.0
    work: float = 0.1
    software: float = 0.3
    software_graph: float = 0.15
    graph_linear: float = 0.05
    graph: float = 0.2
    graph_length: float = 1.5
    beyond_graph: float = 0.2
    linear: float = 0.05
    model_linear: float = 0.1
    model_smooth: float = 0.05
    length: float = 1.8
    cache: float = 0.5
    power: float = 0.5
    device_graph: float = 0.1
    group: float = 0.1
    group_model: float = 0.05
    count: float = 0.05
    model_count: float = 0.05
    noise: float = 0.04


@dataclass(frozen=True, slots=True)
class Held:
    """Rows predicted from all others: ``departure`` is the truth less the prediction.

    ``covariance`` is that of the prediction, from which anchors among the rows are worked in.
    """

    rows: Labels
    departure: Vector
    covariance: Matrix


def roofline(design: Design) -> Vector:
    """The half of log(peak · bandwidth) of each row's device."""
    devices, works = design.device_features, np.nan_to_num(design.work_features)
    level: Vector = devices[:, 0] + devices[:, 1] - works[:, 0] - works[:, 1]
    return 0.5 * level


def covariance(design: Design, scales: Scales) -> Matrix:
    """Between the rows of a design [n, n], without noise."""
    s, d = scales, design
    model, mode = _same(d.model), _same(d.model_mode)
    near = _near_works(d, scales)
    kin = (model + mode) / 2 + near
    linear, smooth = _device_kernels(d, scales)
    result = _levels(d, scales, mode, near)
    result += (s.linear**2 + s.model_linear**2 * kin) * linear
    result += s.model_smooth**2 * kin * smooth
    result += _same(d.device) * s.device_graph**2 * near
    result += _same(d.group) * (s.group**2 + s.group_model**2 * model)
    result += np.outer(d.count, d.count) * (s.count**2 + s.model_count**2 * mode)
    return result


def _levels(design: Design, scales: Scales, mode: Matrix, near: Matrix) -> Matrix:
    """How alike the levels of works are, whatever they run on.

    A model whose graph is unknown may lie anywhere; one whose graph is known lies near those whose
    graphs ask for the same, but for what a graph does not say.
    """
    s = scales
    known = np.isfinite(design.work_features[:, 0])
    both = np.outer(known, known)
    features = np.nan_to_num(design.work_features)
    anywhere = s.level**2 * _same(design.edition) * np.outer(~known, ~known)
    anywhere += both * (s.graph_level**2 + s.graph_linear**2 * features @ features.T)
    apart = (design.batch[:, None] - design.batch[None, :]) ** 2
    settled = s.setting**2 * _same(design.setting)
    batches = s.batch**2 * mode * np.exp(-apart / (2 * s.batch_length**2))
    graphs = both * (s.graph**2 * near + s.beyond_graph**2 * mode)
    result: Matrix = anywhere + settled + batches + graphs + s.work**2 * _same(design.work)
    return result + _same(design.software) * (s.software**2 + s.software_graph**2 * near)


def _near_works(design: Design, scales: Scales) -> Matrix:
    """How near works are by what their graphs ask for; 0 where that is not known."""
    features = design.work_features
    apart = _squares(np.nan_to_num(features)) / (2 * scales.graph_length**2)
    known = np.isfinite(features[:, 0])
    near: Matrix = np.exp(-apart) * np.outer(known, known)
    return near


def _device_kernels(design: Design, scales: Scales) -> tuple[Matrix, Matrix]:
    features = design.device_features * np.array([1.0, 1.0, scales.cache, scales.power])
    return features @ features.T, np.exp(-_squares(features) / (2 * scales.length**2))


def _squares(features: Matrix) -> Matrix:
    """Squared distances between rows [n, n]."""
    squares = (features**2).sum(axis=1)
    result: Matrix = np.maximum(squares[:, None] + squares[None, :] - 2 * features @ features.T, 0)
    return result


def _same(labels: Labels) -> Matrix:
    result: Matrix = (labels[:, None] == labels[None, :]).astype(float)
    return result


def held_out(
    design: Design, scales: Scales, groups: Labels, only: Sequence[int] | None = None
) -> tuple[Held, ...]:
    """Each group of rows predicted from the rows of all others; all groups, or ``only`` some."""
    centred = _departures(design)
    matrix = covariance(design, scales) + scales.noise**2 * np.eye(len(centred))
    inverse = np.asarray(np.linalg.inv(matrix), dtype=np.float64)
    weighted = inverse @ centred
    return tuple(
        _held(inverse, weighted, np.flatnonzero(groups == group))
        for group in (np.unique(groups) if only is None else only)
    )


def _held(inverse: Matrix, weighted: Vector, rows: Labels) -> Held:
    within = np.asarray(np.linalg.inv(inverse[np.ix_(rows, rows)]), dtype=np.float64)
    return Held(rows, within @ weighted[rows], within)


def _departures(design: Design) -> Vector:
    departures: Vector = design.rate - roofline(design)
    centred: Vector = departures - departures.mean()
    return centred


def predictable(design: Design, rows: Labels) -> list[int]:
    """Places among rows whose level follows from other rows, or from the model's graph."""
    others = np.delete(design.edition, rows)
    known = np.isin(design.edition[rows], others) | np.isfinite(design.work_features[rows, 0])
    return [int(at) for at in np.flatnonzero(known)]


def likelihood(design: Design, scales: Scales, groups: Labels) -> float:
    """The logarithm of how likely the rows of each group are, seen from the other groups.

    Of a multivariate Student t, each group counting for few rows only.
    """
    total = 0.0
    for held in held_out(design, scales, groups):
        known = predictable(design, held.rows)
        if known:
            total += _student(held.departure[known], held.covariance[np.ix_(known, known)])
    return total


def _student(departure: Vector, matrix: Matrix) -> float:
    rows = len(departure)
    root = np.linalg.cholesky(matrix)
    squares = float((np.linalg.solve(root, departure) ** 2).sum())
    density = (
        math.lgamma((_FREEDOM + rows) / 2)
        - math.lgamma(_FREEDOM / 2)
        - rows / 2 * math.log(_FREEDOM * math.pi)
        - float(np.log(np.diag(root)).sum())
        - (_FREEDOM + rows) / 2 * math.log1p(squares / _FREEDOM)
    )
    return density * min(1.0, _ROWS_THAT_COUNT / rows)


# Found by ``likelihood`` on tables of others: plain frameworks in fp32 (NeuSight), and programs
# that vendors tuned for each device (MLPerf Inference), whose rates follow a device's facts more
# freely.
PROFILES = (
    Scales(),
    Scales(
        setting=0.02, batch=0.08, work=0.01, linear=2.0, model_linear=0.04, model_smooth=0.25,
        cache=0.05, group=0.07, count=0.01, model_count=0.01,
    ),
)  # fmt: skip


def likeliest(design: Design, groups: Labels) -> Scales:
    """The set of scales under which the groups are likeliest, each seen from the others."""
    return max(PROFILES, key=lambda scales: likelihood(design, scales, groups))
