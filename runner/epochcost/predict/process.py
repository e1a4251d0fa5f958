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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Labels = NDArray[np.int64]

# Rows of one group say little more than so many of them: a device with 250 rows is one device.
_ROWS_THAT_COUNT = 25
# Degrees of freedom of the Student t by which scales are scored, so that one device does not rule.
_FREEDOM = 4


@dataclass(frozen=True, slots=True)
class Design:
    """Rows as arrays of one length n: ``rate`` is the logarithm of a rate per device.

    ``device_features`` is [n, k], centred, the first two columns log peak and log bandwidth;
    ``work_features`` [n, j], NaN where a work's graph is not known. The labels number works (one
    model in one setting), models with a mode, models, devices, groups of devices that are one
    under every form, and software. ``count`` is the logarithm of the devices in the machine,
    ``batch`` that of the batch size per device, 0 where none is given.
    """

    rate: Vector
    device_features: Matrix
    work_features: Matrix
    work: Labels
    model_mode: Labels
    model: Labels
    device: Labels
    group: Labels
    software: Labels
    count: Vector
    batch: Vector

    def rows(self, chosen: NDArray[np.bool_] | Labels) -> Design:
        """The chosen rows only."""
        return Design(*(getattr(self, name)[chosen] for name in self.__slots__))


@dataclass(frozen=True, slots=True)
class Scales:
    """Standard deviations of the logarithm of a rate by what it departs for, and length scales.

    ``cache`` and ``power`` weigh the device's third and fourth feature against the first two.
    """

    level: float = 4.0
    linear: float = 0.3
    model_linear: float = 0.1
    smooth: float = 0.3
    model_smooth: float = 0.13
    device: float = 0.02
    group: float = 0.06
    device_model: float = 0.02
    group_model: float = 0.03
    count: float = 0.05
    model_count: float = 0.05
    noise: float = 0.04
    length: float = 1.8
    cache: float = 0.5
    power: float = 0.5
    batch: float = 0.3
    graph: float = 0.25
    graph_length: float = 1.5


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
    return 0.5 * (design.device_features[:, 0] + design.device_features[:, 1])


def covariance(one: Design, other: Design, scales: Scales) -> Matrix:
    """Between the rows of two designs [n, m], without noise."""
    s = scales
    model, mode = _same(one.model, other.model), _same(one.model_mode, other.model_mode)
    group, device = _same(one.group, other.group), _same(one.device, other.device)
    linear, smooth = _device_kernels(one, other, scales)
    kin = (model + mode) / 2
    result = _levels(one, other, scales)
    result += (s.linear**2 + s.model_linear**2 * kin) * linear
    result += (s.smooth**2 + s.model_smooth**2 * kin) * smooth
    result += s.device**2 * device + s.group**2 * group
    result += s.device_model**2 * device * mode + s.group_model**2 * group * model
    counts = np.outer(one.count, other.count)
    result += counts * (s.count**2 + s.model_count**2 * mode)
    return result


def _levels(one: Design, other: Design, scales: Scales) -> Matrix:
    """How alike the levels of two works are: one work's are one; one model's differ by batch."""
    mode = _same(one.model_mode, other.model_mode)
    software = _same(one.software, other.software)
    apart = (one.batch[:, None] - other.batch[None, :]) ** 2
    near = np.exp(-apart / 8)
    return scales.level**2 * mode * software + scales.batch**2 * mode * near


def _device_kernels(one: Design, other: Design, scales: Scales) -> tuple[Matrix, Matrix]:
    weights = np.array([1.0, 1.0, scales.cache, scales.power])
    x, y = one.device_features * weights, other.device_features * weights
    apart = ((x[:, None, :] - y[None, :, :]) ** 2).sum(axis=-1)
    return x @ y.T, np.exp(-apart / (2 * scales.length**2))


def _same(one: Labels, other: Labels) -> Matrix:
    return (one[:, None] == other[None, :]).astype(float)
