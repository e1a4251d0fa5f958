"""A Gaussian process over logarithms of rates: which differences between machines carry over.

The logarithm of a rate is a level of its work, plus the half of log(peak · bandwidth) that a
roofline would give, plus departures: those that all works share (by the device's features), those
of one model, and those of one device or one machine's count. Each has a scale. What is left out can
be predicted in closed form (Sundararajan and Keerthi 2001, "Predictive approaches for choosing
hyperparameters in Gaussian processes", for single points; here for whole groups).

The process's certainty is checked against rows that it has not seen: each group is predicted from
the others, and the errors, in standard deviations, give the factor by which intervals are widened
or narrowed (cross-conformal prediction: Vovk 2015, "Cross-conformal predictors"). Groups like the
one in question count for more, and none for many rows.

Rasmussen and Williams 2006, "Gaussian processes for machine learning", chapters 2 and 4. The rows
and their features are made by ``design``; this module knows arrays only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Labels = NDArray[np.int64]

LEVEL = 0.9
# Of few groups, a new one lies outside of the quantile at LEVEL more often than LEVEL says: the
# quantile is taken higher by the share of one group, but not so high that one row decides.
_HIGHEST_QUANTILE = 0.97
# However unlike, a group says something; and a device with 250 rows is one device.
_LEAST_LIKENESS = 0.2
_ROWS_THAT_COUNT = 25
_LIKENESS_LENGTH = 1.5
# Forward, and twice as much backward (Kaplan et al. 2020, arXiv 2001.08361, section 2.1).
PASSES = 3


@dataclass(frozen=True, slots=True)
class Design:
    """Rows as arrays of one length n: ``rate`` is the logarithm of a rate per device.

    ``device_features`` is [n, 4], centred: logarithms of peak, bandwidth, cache and power;
    ``work_features`` [n, j], NaN where a work's graph is not known. The labels number works (one
    model under one setting, batch included), settings (model and software), models in one edition
    of a source, models with their mode, models, stacks (sources with their mode), software,
    devices, groups of devices that are one under every form, and makers' generations. ``count`` is
    the logarithm of the devices in the machine, ``batch`` that of the batch, 0 where none is given;
    ``training`` is 1 where a step trains.
    """

    rate: Vector
    device_features: Matrix
    work_features: Matrix
    work: Labels
    setting: Labels
    edition: Labels
    model_mode: Labels
    model: Labels
    stack: Labels
    software: Labels
    device: Labels
    group: Labels
    generation: Labels
    count: Vector
    batch: Vector
    training: Vector

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
    stack: float = 0.0
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
    """The half of log(peak · bandwidth) of each row's device, less that of what its work asks for.

    A training step asks for three forward passes.
    """
    devices, works = design.device_features, np.nan_to_num(design.work_features)
    level: Vector = devices[:, 0] + devices[:, 1] - works[:, 0] - works[:, 1]
    result: Vector = 0.5 * level - np.log(PASSES) * design.training
    return result


def covariance(one: Design, other: Design, scales: Scales) -> Matrix:
    """Between the rows of two designs [n, m], without noise; labels mean the same in both."""
    s = scales
    model, mode = _same(one.model, other.model), _same(one.model_mode, other.model_mode)
    near = _near_works(one, other, scales)
    kin = (model + mode) / 2 + near
    linear, smooth = _device_kernels(one, other, scales)
    result = _levels(one, other, scales, mode, near)
    result += (s.linear**2 + s.model_linear**2 * kin) * linear
    result += s.model_smooth**2 * kin * smooth
    result += _same(one.device, other.device) * s.device_graph**2 * near
    result += _same(one.group, other.group) * (s.group**2 + s.group_model**2 * model)
    result += np.outer(one.count, other.count) * (s.count**2 + s.model_count**2 * mode)
    return result


def _levels(one: Design, other: Design, scales: Scales, mode: Matrix, near: Matrix) -> Matrix:
    """How alike the levels of works are, whatever they run on.

    A model whose graph is unknown may lie anywhere; one whose graph is known lies near those whose
    graphs ask for the same, but for what a graph does not say.
    """
    s = scales
    known, others_known = _known(one), _known(other)
    both = np.outer(known, others_known)
    features = np.nan_to_num(one.work_features) @ np.nan_to_num(other.work_features).T
    apart = (one.batch[:, None] - other.batch[None, :]) ** 2
    edition = _same(one.edition, other.edition) * np.outer(~known, ~others_known)
    result: Matrix = s.level**2 * edition
    result += both * (s.graph_level**2 + s.graph_linear**2 * features)
    result += both * (s.graph**2 * near + s.beyond_graph**2 * mode)
    result += s.setting**2 * _same(one.setting, other.setting)
    result += s.work**2 * _same(one.work, other.work)
    result += s.batch**2 * mode * np.exp(-apart / (2 * s.batch_length**2))
    result += s.stack**2 * _same(one.stack, other.stack)
    software = _same(one.software, other.software)
    return result + software * (s.software**2 + s.software_graph**2 * near)


def _known(design: Design) -> NDArray[np.bool_]:
    """Which rows' graphs are known."""
    return np.isfinite(design.work_features[:, 0])


def _near_works(one: Design, other: Design, scales: Scales) -> Matrix:
    """How near works are by what their graphs ask for; 0 where that is not known."""
    apart = _squares(np.nan_to_num(one.work_features), np.nan_to_num(other.work_features))
    near: Matrix = np.exp(-apart / (2 * scales.graph_length**2))
    return near * np.outer(_known(one), _known(other))


def _device_kernels(one: Design, other: Design, scales: Scales) -> tuple[Matrix, Matrix]:
    weights = np.array([1.0, 1.0, scales.cache, scales.power])
    x, y = one.device_features * weights, other.device_features * weights
    return x @ y.T, np.exp(-_squares(x, y) / (2 * scales.length**2))


def _squares(one: Matrix, other: Matrix) -> Matrix:
    """Squared distances between rows [n, m]."""
    squares = (one**2).sum(axis=1)[:, None] + (other**2).sum(axis=1)[None, :]
    result: Matrix = np.maximum(squares - 2 * one @ other.T, 0)
    return result


def _same(one: Labels, other: Labels) -> Matrix:
    result: Matrix = (one[:, None] == other[None, :]).astype(float)
    return result


def held_out(
    design: Design, scales: Scales, groups: Labels, inverse: Matrix | None = None
) -> tuple[Held, ...]:
    """Each group of rows predicted from the rows of all others.

    ``inverse`` is that of ``with_noise``, if it is there already.
    """
    centred, _ = centred_departures(design)
    if inverse is None:
        inverse = inverted(with_noise(design, scales))
    weighted = inverse @ centred
    return tuple(
        _held(inverse, weighted, np.flatnonzero(groups == group)) for group in np.unique(groups)
    )


def inverted(matrix: Matrix) -> Matrix:
    """The inverse of a covariance."""
    return np.asarray(np.linalg.inv(matrix), dtype=np.float64)


def _held(inverse: Matrix, weighted: Vector, rows: Labels) -> Held:
    within = inverted(inverse[np.ix_(rows, rows)])
    return Held(rows, within @ weighted[rows], within)


def with_noise(design: Design, scales: Scales) -> Matrix:
    """The covariance of rows as they were observed [n, n]."""
    return covariance(design, design, scales) + scales.noise**2 * np.eye(len(design.rate))


def centred_departures(design: Design) -> tuple[Vector, float]:
    """Of the rates from the roofline, about their mean; and that mean."""
    departures = design.rate - roofline(design)
    mean = float(departures.mean()) if len(departures) else 0.0
    return departures - mean, mean


def predictable(design: Design, rows: Labels) -> list[int]:
    """Places among rows whose level follows from other rows, or from the model's graph."""
    others = np.delete(design.edition, rows)
    known = np.isin(design.edition[rows], others) | np.isfinite(design.work_features[rows, 0])
    return [int(at) for at in np.flatnonzero(known)]


@dataclass(frozen=True, slots=True)
class Calibration:
    """Errors of rows that were left out: in standard deviations, and the weight of each.

    ``features`` [n, 4] are those of the rows' devices; ``groups`` of them were left out.
    """

    deviations: Vector
    weights: Vector
    features: Matrix
    groups: int

    def factor(self, features: Vector) -> float:
        """Standard deviations that hold the truth as often as ``LEVEL`` says, on such a device.

        Infinite where there are no errors to go by.
        """
        if not len(self.deviations):
            return math.inf
        apart = ((self.features - features) ** 2).sum(axis=1)
        likeness = np.exp(-apart / (2 * _LIKENESS_LENGTH**2))
        weights = self.weights * (_LEAST_LIKENESS + likeness)
        order = np.argsort(self.deviations)
        share = np.cumsum(weights[order]) / weights.sum()
        quantile = min(_HIGHEST_QUANTILE, LEVEL * (1 + 1 / self.groups))
        at = min(int(np.searchsorted(share, quantile)), len(order) - 1)
        return float(self.deviations[order][at])


def calibrate(
    design: Design, scales: Scales, groups: Labels, inverse: Matrix | None = None
) -> Calibration:
    """Predict each group from the others and keep the errors; ``inverse`` as for ``held_out``.

    Rows are left out whose level nothing says.
    """
    deviations, weights, rows = [], [], []
    held_groups = held_out(design, scales, groups, inverse=inverse)
    for held in held_groups:
        known = predictable(design, held.rows)
        spread = np.sqrt(np.diag(held.covariance))
        rows += [int(held.rows[at]) for at in known]
        deviations += [abs(held.departure[at]) / spread[at] for at in known]
        weights += [min(1.0, _ROWS_THAT_COUNT / len(held.rows)) / len(known)] * len(known)
    features = design.device_features[rows]
    return Calibration(np.array(deviations), np.array(weights), features, len(held_groups))


# Of all sources together, whose versions are one: what a software reaches is mostly its source's,
# whatever the precision. Likeliest on what is learnt from, each scale changed by itself.
POOLED = Scales(
    stack=0.28, software=0.1, setting=0.07, batch=0.2, batch_length=1.4, graph=0.4,
    graph_length=3.0, graph_linear=0.1, beyond_graph=0.14, linear=0.035, model_linear=0.07,
    cache=0.35, device_graph=0.07, noise=0.055,
)  # fmt: skip

# For CPUs, a few machines by vCPUs under as many programs: more vCPUs gain one work much and
# another nothing, and programs differ by more than on GPUs.
OF_CPUS = Scales(
    graph=0.5, graph_linear=0.2, beyond_graph=1.0, setting=0.2, batch=0.3, software=1.0,
    software_graph=0.6, linear=0.3, model_linear=0.2, model_smooth=0.5, length=2.0, group=0.3,
    group_model=0.2, noise=0.1,
)  # fmt: skip
