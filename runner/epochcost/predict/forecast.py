"""Forecast the rates of workloads on devices on which they have not been measured.

One Gaussian process learns from all published rates and from our own. Software without known rates
is assumed to differ from known software as much as two known software packages differ.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from operator import attrgetter
from pathlib import Path
from statistics import NormalDist

import numpy as np
from pydantic import TypeAdapter

from epochcost.graphs.profile import Profile
from epochcost.predict.design import (
    Devices,
    Placed,
    Precision,
    content_of,
    designed,
    graph_distance,
    seconds_at_peak,
)
from epochcost.predict.joint import NINE_OF_TEN, Draws, joint_draws, scaling_of
from epochcost.predict.process import (
    POOLED,
    Calibration,
    Design,
    Labels,
    Matrix,
    Scales,
    Vector,
    bordered_inverse,
    calibrate,
    centred_departures,
    covariance,
    inverted,
    members,
    numbered,
    relative_errors,
    with_noise,
)
from epochcost.predict.rates import Rate
from epochcost.results.kept import Keep
from epochcost.specs.hardware import Device
from epochcost.specs.study import Mode

# A rate of our own; a question has the other facts.
_OWN = Rate(
    source="epochcost", model="", task="", mode="", precision="", batch=None, size="", software="",
    accelerator="", count=1, unit="samples/s", per_second=1.0, file="", path="", line=0,
)  # fmt: skip
# All versions of our runtime are one software: on H100, measured rates of one version say how far
# the other version is from published software.
OUR_RUNTIME = "ONNX Runtime"
# Examples on a device that keep it busy, in a part of a training's batch.
_LEAST_PART = 32
# Distance of logarithms of demands beyond which left-out models are predicted too badly.
FARTHEST_KIN = 3.0


@dataclass(frozen=True, slots=True)
class Question:
    """A workload on ``count`` devices of one machine, in steps of ``batch`` examples.

    Source, software, mode, precision and input size are those of the published ``program``, if any.
    """

    model: str
    profile: Profile
    mode: Mode
    precision: Precision
    batch: int
    device: Device
    count: int
    program: Rate | None = None
    software: str = OUR_RUNTIME


@dataclass(frozen=True, slots=True)
class Forecast:
    """Examples a second on the whole machine; 90 % of true rates lie between ``low`` and ``high``.

    Within a call, draws of log(time / time at ``per_second``) of one workload are correlated.
    """

    per_second: float
    low: float
    high: float
    draws: Draws = field(compare=False, repr=False)


_KEPT = Keep(
    "forecasts",
    TypeAdapter(tuple[str, tuple[Forecast, ...]]),
    ("graphs/profile.py", "predict", "specs/hardware.py"),
)


@dataclass(frozen=True, eq=False)
class Forecaster:
    """Forecast rates of workloads from ``published`` rates and from our own, ``measured`` ones.

    Only published rates calibrate the 90 % intervals. ``cache`` is the folder of earlier forecasts.
    """

    published: Sequence[Placed]
    devices: Devices
    measured: Sequence[Placed] = ()
    scales: Scales = POOLED
    cache: Path | None = None

    @cached_property
    def _placed(self) -> tuple[Placed, ...]:
        return *self.published, *self.measured

    @cached_property
    def _calibrations_and_inverse(self) -> tuple[tuple[Calibration, ...], Matrix]:
        """Calibrations of the intervals, and inverse covariance of all known rates' logarithms."""
        design, count = designed(self._placed, self.devices), len(self.published)
        covariances = with_noise(design, self.scales)
        published = covariances[:count, :count]
        inverse = inverted(published)
        calibrations = _device_and_model_calibrations(
            design.rows(np.arange(count)), published, inverse
        )
        return calibrations, bordered_inverse(inverse, covariances[count:])

    @cached_property
    def _highest_utilisation(self) -> float:
        rows = [row for row in self._placed if row.profile is not None]
        shares = [row.rate.per_second / _rate_at_peak(row) for row in rows]
        return min(1.0, float(np.quantile(shares, 0.98))) if shares else 1.0

    def forecasts(self, questions: Sequence[Question]) -> tuple[Forecast, ...]:
        """Forecast the rate for each question, at most the devices' peak rate.

        A training on GPUs is at least as fast as with its batch in two, four or more parts.
        """
        parts = {question: tuple(_with_parts(question)) for question in questions}
        # Machines with the same devices ask the same question.
        distinct = tuple(dict.fromkeys(chain.from_iterable(parts.values())))
        key = self.scales, len(self.published), distinct
        forecasts = _KEPT.value(
            self.cache,
            (key, content_of(self._placed, self.devices)) if self.cache else None,
            lambda: self.of([as_rate(question, 1.0) for question in distinct]),
        )
        by_question = dict(zip(distinct, forecasts, strict=True))
        return tuple(
            max(map(by_question.__getitem__, parts[question]), key=attrgetter("per_second"))
            for question in questions
        )

    def of(self, rows: Sequence[Placed]) -> tuple[Forecast, ...]:
        """Forecast the rate of each row's workload on its device; the row's own rate is ignored."""
        if not rows:
            return ()
        learnt, unknown, inverse = self._designs_and_inverse(rows)
        factors = self._interval_factors(unknown)
        forecasts: dict[int, Forecast] = {}
        blocks = _row_indices_by_workload(unknown, rows)
        for places, mean, spread in _posterior_by_workload(
            learnt, unknown, self.scales, inverse, blocks
        ):
            work = rows[places[0]].rate
            draws = joint_draws(spread, factors[places], f"{work.model} {work.mode}")
            halves = factors[places] * np.sqrt(np.diag(spread))
            for at, level, half, drawn in zip(places, mean, halves, draws, strict=True):
                ceiling = self._highest_utilisation * _rate_at_peak(rows[at])
                forecasts[int(at)] = _bounded_forecast(
                    rows[at], ceiling, float(level), float(half), drawn
                )
        return tuple(forecasts[at] for at in range(len(rows)))

    def errors_of(self, rows: Sequence[Placed]) -> Matrix:
        """Covariance [n, n] of the errors in the logarithms of the forecasts of ``rows``.

        Unlike in ``draws``, errors of different models are correlated. Upper limits do not count.
        """
        learnt, unknown, inverse = self._designs_and_inverse(rows)
        between = covariance(unknown, learnt, self.scales)
        explained = inverse @ between.T
        errors = self.scales.noise**2 * np.eye(len(rows))
        blocks = _row_indices_by_workload(unknown, rows)
        for block in blocks:
            errors[block] += covariance(unknown.rows(block), unknown, self.scales)
            errors[block] -= between[block] @ explained
        factors = self._interval_factors(unknown)
        for block in blocks:
            scaling = scaling_of(errors[np.ix_(block, block)], factors[block])
            errors[block] = scaling @ errors[block]
            errors[:, block] = errors[:, block] @ scaling.T
        return errors

    def _designs_and_inverse(self, rows: Sequence[Placed]) -> tuple[Design, Design, Matrix]:
        """Designs of all known rates and of ``rows``, and inverse covariance of the known ones."""
        design = designed(self._placed, self.devices, rows)
        learning = np.arange(len(design.rate)) < len(self._placed)
        return design.rows(learning), design.rows(~learning), self._calibrations_and_inverse[1]

    def _interval_factors(self, rows: Design) -> Vector:
        devices, places = np.unique(rows.device_features, axis=0, return_inverse=True)
        factors = [
            max(each.factor(device) for each in self._calibrations_and_inverse[0])
            for device in devices
        ]
        return np.array(factors)[places.ravel()] * relative_errors(rows)


def _with_parts(question: Question) -> Iterator[Question]:
    """Yield a question and, for a training on GPUs, the questions about parts of its batch.

    Few rates at large batches are known, so their forecasts may be below those of the parts.
    """
    yield question
    mode = question.program.mode if question.program else question.mode
    if mode == "training" and question.device.generation != "CPU":
        batch = question.batch // 2
        while batch >= _LEAST_PART * question.count:
            yield replace(question, batch=batch)
            batch //= 2


def _bounded_forecast(
    row: Placed, ceiling: float, mean: float, half_width: float, draws: Draws
) -> Forecast:
    """Forecast the rate of ``row`` in examples a second, at most ``ceiling``.

    ``mean`` ± ``half_width`` is the 90 % interval of log(rate per device).
    """
    rate = row.rate.count * math.exp(mean)
    low, high = (min(rate * math.exp(end), ceiling) for end in (-half_width, half_width))
    later = _mean_excess(math.log(rate) - math.log(ceiling), half_width / NINE_OF_TEN)
    level = min(rate * math.exp(-later), ceiling)
    bounded = draws.bounded(math.log(level / rate), math.log(level) - math.log(ceiling))
    return Forecast(level, min(low, level), high, bounded)


def _mean_excess(least: float, deviation: float) -> float:
    """Mean of max(0, ``least`` - x) if x is normal with mean 0 and standard ``deviation``.

    For an infinite deviation, the result is that of a deviation of 0.
    """
    if math.isinf(least) or math.isinf(deviation):
        return max(0.0, least)
    standard = NormalDist(0.0, deviation)
    return least * standard.cdf(least) + deviation**2 * standard.pdf(least)


def has_kin(profile: Profile, placed: Sequence[Placed]) -> bool:
    """Whether the graph of any rate in ``placed`` is similar to the graph of ``profile``.

    Recurrent networks are compared with recurrent networks only.
    """
    profiles = {row.profile for row in placed if row.profile is not None}
    return any(graph_distance(profile, kin) < FARTHEST_KIN for kin in profiles)


def _rate_at_peak(row: Placed) -> float:
    return row.rate.count / seconds_at_peak(row, row.profile) if row.profile else math.inf


def _device_and_model_calibrations(
    design: Design, covariances: Matrix, inverse: Matrix
) -> tuple[Calibration, ...]:
    by_device, graphs = calibrate(design, inverse, design.group), design.has_graph
    # Without known graphs, no question has one either.
    if not graphs.any():
        return (by_device,)
    with_graphs = design.rows(graphs)
    within = inverted(covariances[np.ix_(graphs, graphs)])
    return by_device, calibrate(with_graphs, within, with_graphs.model)


def _row_indices_by_workload(design: Design, rows: Sequence[Placed]) -> list[Labels]:
    # Draws are scaled within a block, so rows with other ``relative_errors`` are another block.
    facts = zip(design.model_mode, relative_errors(design), rows, strict=True)
    return list(members(numbered((mode, error, row.profile) for mode, error, row in facts)))


def _posterior_by_workload(
    learnt: Design, unknown: Design, scales: Scales, inverse: Matrix, workloads: Sequence[Labels]
) -> Iterator[tuple[Labels, Vector, Matrix]]:
    """Yield, by workload, row indices, means [n] and covariance [n, n] of log(rate per device)."""
    departures, mean = centred_departures(learnt)
    weights = inverse @ departures
    # One workload at a time saves memory, and makes the draws of different workloads independent.
    for rows in workloads:
        block = unknown.rows(rows)
        between = covariance(block, learnt, scales)
        spread = covariance(block, block, scales) + scales.noise**2 * np.eye(len(rows))
        yield (
            rows,
            between @ weights + mean + block.roofline,
            spread - between @ inverse @ between.T,
        )


def as_rate(question: Question, per_second: float) -> Placed:
    """Describe a question as a row of rates; forecasts ignore ``per_second``, a number above 0."""
    own = replace(
        _OWN, mode=question.mode, precision=question.precision, software=question.software
    )
    rate = replace(
        question.program or own,
        model=question.model,
        accelerator=question.device.name,
        count=question.count,
        batch=question.batch / question.count,
        per_second=per_second,
    )
    return Placed(rate, question.device, question.profile)
