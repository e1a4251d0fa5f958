"""Predict how rates differ between machines, with a Gaussian process over their logarithms.

A rate's logarithm is the sum of a roofline model's prediction and of terms (see ``Scales``).

Sources: Rasmussen and Williams 2006, "Gaussian processes for machine learning", chapters 2 and 4;
Sundararajan and Keerthi 2001 (left-out groups); Vovk 2015 (cross-conformal prediction).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Labels = NDArray[np.int64]

LEVEL = 0.9
# With few groups, a new one exceeds the quantile at LEVEL too often: a higher quantile allows for
# one more group, up to a bound so that no single row decides.
_HIGHEST_QUANTILE = 0.97
# Added to a row's likeness to the question (0 to 1), so that the most different row still counts.
_LEAST_LIKENESS = 0.2
_LIKENESS_LENGTH = 1.5
# The rows of a group of n rows share the weight 1, or 25 / n if n is larger than 25, so that a few
# devices with hundreds of rows do not decide alone. In ``departures``, a group has the weight n, at
# most 25. That rule was tried here with benchmarks/left_out_cases.py on 2026-11-27: the half width
# grew from x 1.69 to x 2.19, but the coverage only from 96 to 97 %, so it was not adopted.
_ROWS_THAT_COUNT = 25
# Errors relative to those of rates in mixed precision that the device limits, in predicted standard
# deviations. Rates in fp32 are published for chips that differ more, such as K80, P100 and T4. With
# one factor for all, 80 to 87 % of the ranges held in fp32, and 96 to 98 % in mixed precision. A
# host's speed is unknown; with 2 instead of 3, 79 to 86 % of the ranges of its rates held.
_ERRORS_OUTSIDE_MIXED = 1.6
_ERRORS_BY_HOSTS = 3.0
# Intermediate matrices with so few rows fit into a processor's cache; more take twice the time.
_ROWS_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Design:
    """Rates to learn from or to predict, as arrays of n rows.

    ``rate`` (per device), ``roofline`` (the rate by a roofline model), ``count`` (devices) and
    ``batch`` (examples on one device) are logarithms. ``device_features`` [n, 4] are logarithms of
    peak rate, bandwidth, cache and power, each minus its median. ``work_features`` [n, 7] describe
    the graph, NaN if unknown. ``uncertainty`` is the standard deviation of the logarithm of a rate
    that we measured, else 0. ``is_host_bound`` marks batches too small to keep a device busy.

    The other fields are labels. Two rows have the same label if they agree in these facts:

    - ``work``: all facts of ``setting``, input size and batch size.
    - ``setting``: source, model, mode, precision, software, task and unit.
    - ``edition``: source, model, mode, task and unit.
    - ``model_mode``: source without its version, model and mode.
    - ``model``: model, without the target accuracy that MLPerf appends to the name.
    - ``stack``: source and mode.
    - ``software``: source, mode, software and precision.
    - ``group``: chip and memory size of the device.
    """

    rate: Vector
    roofline: Vector
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
    uncertainty: Vector
    is_mixed: NDArray[np.bool_]
    is_host_bound: NDArray[np.bool_]

    def rows(self, chosen: NDArray[np.bool_] | Labels) -> Design:
        """The arrays of the ``chosen`` rows."""
        return Design(*(getattr(self, name)[chosen] for name in self.__slots__))

    @property
    def has_graph(self) -> NDArray[np.bool_]:
        """For each rate [n], whether its model's graph is known (``work_features`` are not NaN)."""
        return np.isfinite(self.work_features[:, 0])


@dataclass(frozen=True, slots=True)
class Scales:
    """Standard deviations of the terms that add up to a rate's logarithm, and other constants.

    Two rates have a term in common if they agree in all parts of its name. A part may be a label of
    ``Design``, ``graph`` (known and similar graphs) or ``batch`` (similar batch sizes). Exceptions:

    - ``level``: ``edition`` is equal, and neither graph is known.
    - ``graph_level``, ``graph_linear``: both graphs are known.
    - ``beyond_graph``: both graphs are known, and ``model_mode`` is equal.
    - ``batch``: ``model_mode`` is equal, too.
    - ``model_linear``, ``model_smooth``: ``model`` is equal, or the graphs are similar.
    - ``model_count``: ``model_mode`` is equal.
    - ``linear``: always. ``noise``: never.

    Names with ``linear`` mean slopes over features of the device, or of the graph
    (``graph_linear``). ``model_count`` is a slope over log(number of devices), ``model_smooth`` a
    smooth function of the device's features. Correlation falls over the distances ``graph_length``,
    ``batch_length`` and ``length`` (of ``model_smooth``). ``cache`` and ``power`` weigh these
    features of the device.
    """

    level: float = 6.0
    graph_level: float = 2.0
    setting: float = 0.1
    batch: float = 0.1
    batch_length: float = 2.0
    work: float = 0.1
    stack: float = 0.0
    stack_linear: float = 0.0
    stack_group: float = 0.0
    software: float = 0.3
    software_graph: float = 0.15
    graph_linear: float = 0.05
    graph: float = 0.2
    graph_length: float = 1.5
    beyond_graph: float = 0.2
    linear: float = 0.05
    batch_linear: float = 0.0
    setting_batch_linear: float = 0.0
    model_linear: float = 0.1
    model_smooth: float = 0.05
    length: float = 1.8
    cache: float = 0.5
    power: float = 0.5
    device_graph: float = 0.1
    group: float = 0.1
    group_model: float = 0.05
    model_count: float = 0.05
    noise: float = 0.04


def covariance(rows: Design, columns: Design, scales: Scales) -> Matrix:
    """Covariance [n, m] of log rates, without noise; both designs must number labels alike."""
    result = np.empty((len(rows.rate), len(columns.rate)))
    for begin in range(0, len(result), _ROWS_AT_ONCE):
        part = np.arange(begin, min(begin + _ROWS_AT_ONCE, len(result)))
        result[part] = _covariance(rows.rows(part), columns, scales)
    return result


def _covariance(rows: Design, columns: Design, scales: Scales) -> Matrix:
    s = scales
    model, mode = _same(rows.model, columns.model), _same(rows.model_mode, columns.model_mode)
    similarity = _graph_similarity(rows, columns, scales)
    kin = (model + mode) / 2 + similarity
    setting, stack = _same(rows.setting, columns.setting), _same(rows.stack, columns.stack)
    distances = (rows.batch[:, None] - columns.batch[None, :]) ** 2
    batches = np.exp(-distances / (2 * s.batch_length**2))
    linear, smooth = _device_kernels(rows, columns, scales)
    slopes = s.linear**2 + s.model_linear**2 * kin + s.stack_linear**2 * stack
    slopes += (s.batch_linear**2 + s.setting_batch_linear**2 * setting) * batches
    groups = s.group**2 + s.group_model**2 * model + s.stack_group**2 * stack
    result = _level_covariance(rows, columns, scales, mode, similarity)
    result += s.batch**2 * mode * batches
    result += s.setting**2 * setting + s.stack**2 * stack
    result += slopes * linear + s.model_smooth**2 * kin * smooth
    result += _same(rows.device, columns.device) * s.device_graph**2 * similarity
    result += _same(rows.group, columns.group) * groups
    return result + np.outer(rows.count, columns.count) * s.model_count**2 * mode


def _level_covariance(
    rows: Design, columns: Design, scales: Scales, same_mode: Matrix, similarity: Matrix
) -> Matrix:
    """Covariance [n, m] of levels, the parts of log(rate) that are the same on every device."""
    s = scales
    with_graphs = np.outer(rows.has_graph, columns.has_graph)
    features = np.nan_to_num(rows.work_features) @ np.nan_to_num(columns.work_features).T
    # Without graphs, rows of the same edition share a level.
    without = np.outer(~rows.has_graph, ~columns.has_graph)
    edition = _same(rows.edition, columns.edition) * without
    result: Matrix = s.level**2 * edition
    result += with_graphs * (s.graph_level**2 + s.graph_linear**2 * features)
    result += with_graphs * (s.graph**2 * similarity + s.beyond_graph**2 * same_mode)
    result += s.work**2 * _same(rows.work, columns.work)
    software = _same(rows.software, columns.software)
    return result + software * (s.software**2 + s.software_graph**2 * similarity)


def _graph_similarity(rows: Design, columns: Design, scales: Scales) -> Matrix:
    """Similarity [n, m] of graphs: 1 if equal, near 0 if distant, 0 if a graph is unknown."""
    distances = _squared_distances(
        np.nan_to_num(rows.work_features), np.nan_to_num(columns.work_features)
    )
    near: Matrix = np.exp(-distances / (2 * scales.graph_length**2))
    return near * np.outer(rows.has_graph, columns.has_graph)


def _device_kernels(rows: Design, columns: Design, scales: Scales) -> tuple[Matrix, Matrix]:
    weights = np.array([1.0, 1.0, scales.cache, scales.power])
    x, y = rows.device_features * weights, columns.device_features * weights
    return x @ y.T, np.exp(-_squared_distances(x, y) / (2 * scales.length**2))


def _squared_distances(rows: Matrix, columns: Matrix) -> Matrix:
    squares = (rows**2).sum(axis=1)[:, None] + (columns**2).sum(axis=1)[None, :]
    result: Matrix = np.maximum(squares - 2 * rows @ columns.T, 0)
    return result


def _same(rows: Labels, columns: Labels) -> Matrix:
    result: Matrix = (rows[:, None] == columns[None, :]).astype(float)
    return result


def held_out(
    inverse: Matrix, departures: Vector, groups: Iterable[Labels]
) -> Iterator[tuple[Labels, Vector, Matrix]]:
    """Predict each group of rows from all others; yield rows, errors and the errors' covariance.

    Errors are observed − predicted. ``departures`` [n] are observed values of a process with mean
    0, ``inverse`` [n, n] is the inverse of their covariance, noise included.
    """
    weighted = inverse @ departures
    for rows in groups:
        within = inverted(inverse[np.ix_(rows, rows)])
        yield rows, within @ weighted[rows], within


def members(labels: Labels) -> Iterator[Labels]:
    """Yield, for each distinct label, the indices at which ``labels`` has it."""
    for label in np.unique(labels):
        yield np.flatnonzero(labels == label)


def numbered(values: Iterable[Hashable]) -> Labels:
    """Number the distinct values from 0 in order of occurrence; return each value's number [n]."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(value, len(numbers)) for value in values], dtype=np.int64)


def inverted(matrix: Matrix) -> Matrix:
    """The inverse of a covariance matrix."""
    return np.asarray(np.linalg.inv(matrix), dtype=np.float64)


def bordered_inverse(inverse: Matrix, border: Matrix) -> Matrix:
    """The inverse of a covariance matrix [n + m, n + m] from that of its first n rows and columns.

    ``border`` [m, n + m] has the last m rows of the covariance matrix.
    """
    explained = border[:, : len(inverse)] @ inverse
    rest = inverted(border[:, len(inverse) :] - explained @ border[:, : len(inverse)].T)
    corner = rest @ explained
    return np.block([[inverse + explained.T @ corner, -corner.T], [-corner, rest]])


def block_diagonal(first: Matrix, second: Matrix) -> Matrix:
    """Join the covariances of two independent groups of variables into one covariance."""
    zeros = np.zeros((len(first), len(second)))
    return np.block([[first, zeros], [zeros.T, second]])


def with_noise(design: Design, scales: Scales) -> Matrix:
    """Covariance [n, n] of n rates' logarithms, with noise and measuring errors on the diagonal."""
    result = covariance(design, design, scales)
    result[np.diag_indices_from(result)] += scales.noise**2 + design.uncertainty**2
    return result


def centred_departures(design: Design) -> tuple[Vector, float]:
    """log(rate / the roofline's rate) of each row, minus its mean over all rows, and this mean."""
    departures = design.rate - design.roofline
    mean = float(departures.mean()) if len(departures) else 0.0
    return departures - mean, mean


def predictable(design: Design, rows: Labels) -> Labels:
    """Positions in ``rows`` of the rates that the rates outside ``rows`` can predict.

    Such a rate has a known graph, or the ``edition`` of a rate outside ``rows``.
    """
    shared = np.isin(design.edition[rows], np.delete(design.edition, rows))
    return np.flatnonzero(shared | design.has_graph[rows])


@dataclass(frozen=True, slots=True)
class Calibration:
    """Errors of n observations, each predicted without its own group (such as its device).

    ``deviations`` [n] are absolute errors of logarithms in predicted standard deviations;
    `calibrate` also divides them by `relative_errors`. ``weights`` [n] say how much each error
    counts. ``features`` [n, k] describe the observations. ``groups`` is the number of groups.
    """

    deviations: Vector
    weights: Vector
    features: Matrix
    groups: int

    def factor(self, features: Vector) -> float:
        """Half the width of a forecast's 90 % interval, in predicted standard deviations.

        Errors of rates with similar ``features`` count most. The result is infinite without errors;
        the only error of a single rate is 0, because the mean of all rates is subtracted from it.
        """
        if not self.deviations.any():
            return math.inf
        distances = ((self.features - features) ** 2).sum(axis=1)
        likeness = np.exp(-distances / (2 * _LIKENESS_LENGTH**2))
        weights = self.weights * (_LEAST_LIKENESS + likeness)
        order = np.argsort(self.deviations)
        share = np.cumsum(weights[order]) / weights.sum()
        quantile = min(_HIGHEST_QUANTILE, LEVEL * (1 + 1 / self.groups))
        return float(self.deviations[order][np.searchsorted(share, quantile)])


def calibrate(design: Design, inverse: Matrix, groups: Labels) -> Calibration:
    """Predict the rates of each group from all other groups, and collect the errors.

    ``groups`` [n] has the group of each rate. ``inverse`` [n, n] is the inverse of the rates'
    covariance, noise included. Rates that the other groups cannot predict are skipped.
    """
    deviations, weights, rows, count = list[float](), list[float](), list[int](), 0
    departures, _ = centred_departures(design)
    relative = relative_errors(design)
    for group, errors, spread in held_out(inverse, departures, members(groups)):
        places = predictable(design, group)
        if not len(places):
            continue
        rows += group[places].tolist()
        usual = relative[group] * np.sqrt(np.diag(spread))
        deviations += (np.abs(errors) / usual)[places].tolist()
        # The rows of a group share a weight, so that no large group dominates.
        weights += [min(1.0, _ROWS_THAT_COUNT / len(group)) / len(places)] * len(places)
        count += 1
    return Calibration(np.array(deviations), np.array(weights), design.device_features[rows], count)


def relative_errors(design: Design) -> Vector:
    """Expected errors [n], relative to mixed precision with a batch that keeps the device busy."""
    relative = np.where(design.is_mixed, 1.0, _ERRORS_OUTSIDE_MIXED)
    return relative * np.where(design.is_host_bound, _ERRORS_BY_HOSTS, 1.0)


# Fitted to left-out accelerators and models, to ratios of two left-out accelerators or generations,
# and to ratios in left-out sources, by coordinate steps and then by random steps (2026-11-27). The
# gain from a larger device differs between batch sizes (``batch_linear``), more so within a program
# (``setting_batch_linear``), and between programs (``stack_linear``, ``stack_group``).
POOLED = Scales(
    graph_level=4.1, setting=0.03, batch=0.183, batch_length=0.958, work=0.13, stack=0.575,
    stack_linear=0.08, stack_group=0.051, software=0.302, software_graph=0.037, graph_linear=0.1,
    graph=0.525, graph_length=6.5, beyond_graph=0.143, linear=0.0605, batch_linear=0.0203,
    setting_batch_linear=0.063, model_linear=0.0515, model_smooth=0.0806, length=2.4, cache=0.084,
    power=0.347, device_graph=0.0, group=0.0387, group_model=0.0798, model_count=0.03, noise=0.072,
)  # fmt: skip

# For CPUs, whose rows are few machines by vCPUs under few programs: gains from more vCPUs differ
# by work, and programs differ more than on GPUs.
OF_CPUS = Scales(
    graph=0.5, graph_linear=0.2, beyond_graph=1.0, setting=0.2, batch=0.3, software=1.0,
    software_graph=0.6, linear=0.3, model_linear=0.2, model_smooth=0.5, length=2.0, group=0.3,
    group_model=0.2, noise=0.1,
)  # fmt: skip
