"""Order cells of a launch by the regret that their measurement is expected to save per dollar.

The regret of an answer is the extra cost of the machine that it chooses over the machine that is
really cheapest, as a share of the latter's cost. True times are drawn from the joint distribution
of all predicted errors. In each draw, a measurement reveals a true time and so corrects the
predictions for other machines and models. The next cell is the best after those before it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epochcost.analysis.inputs import Inputs
from epochcost.analysis.observations import Goal, observe
from epochcost.analysis.odds import deviations
from epochcost.analysis.predicted import JointTimes, Predictions, joint_times
from epochcost.analysis.rows import Row, group_by, price_rows, ranking
from epochcost.predict.joint import seed_of, standard_normals
from epochcost.predict.process import Labels, Matrix, Vector, block_diagonal
from epochcost.specs.study import Mode, Provider
from epochcost.units import money, rounded

# A free measurement counts as this price, so that the best of several free ones comes first.
_SEED = seed_of("the value of measuring")
_LEAST_DOLLARS = 0.01
# Relative deviation of a time measured on another machine of the same kind.
_NOISE = 0.03
# A measurement that changes no ratio of two costs by more than this changes no answer.
_LEAST_SHIFT = 0.01
# Regret, summed over all answers; the draws cannot tell a smaller saving from none.
_LEAST_SAVED = 1e-4
# Cells that are valued at once, which bounds the memory.
_AT_ONCE = 128
_GOALS: Mapping[Mode, Goal] = MappingProxyType({"training": "full", "inference": "million"})
# Of the ways of a job, pairs are tried of this number, the likeliest to be the cheapest.
_RIVALS = 6
# A measurement outdates the values of those whose correlation with it is higher.
_RELATED = 0.5
# Added to the diagonal, relative to it, so that equal times still have a Cholesky root.
_JITTER = 1e-6


@dataclass(frozen=True, slots=True)
class MeasurableCell:
    """A model, mode and batch size on a machine; ``dollars`` is the most that measuring costs.

    ``machine`` is the id of a hardware spec.
    """

    machine: str
    model: str
    mode: Mode
    batch_size: int
    provider: Provider
    dollars: Decimal


@dataclass(frozen=True, slots=True)
class CellValue:
    """The mean regret of ``answers`` answers before and after a cell is measured, as shares.

    These are the answers that the measurement improves. The cells before it in the order count as
    measured. If the cell only helps together with the next or previous one, that is its
    ``partner``, and both state the regrets before and after the two.
    """

    cell: MeasurableCell
    answers: int
    regret_before: float
    regret_after: float
    partner: MeasurableCell | None = None

    @property
    def dollars(self) -> Decimal:
        """The most that the measurement costs."""
        return self.cell.dollars

    @property
    def sentence(self) -> str:
        """State the price and the use of the measurement."""
        cell, partner, count = self.cell, self.partner, self.answers
        answers = "an answer" if count == 1 else f"{count} answers"
        together = f", together with {partner.machine}," if partner else ""
        regrets = self.regret_before, self.regret_after
        before, after = (f"{rounded(100 * share, 2)} %" for share in regrets)
        return (
            f"measuring {cell.model} {cell.mode} on {cell.machine} costs at most "
            f"{money(cell.dollars, 'USD')} and{together} is expected to cut the regret of "
            f"{answers} from {before} to {after}"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Ways:
    """Ways to do jobs, as arrays of n; ways with the same number in ``jobs`` compete.

    ``times`` has the index of each way's time in ``covariance`` [t, t], the errors of logarithms of
    predicted times. ``costs`` are logarithms of predicted costs. ``slopes`` are the changes of
    these with the logarithm of the time, 0 to 1. ``noise`` [t] has the variances of measurements.
    """

    jobs: Labels
    times: Labels
    costs: Vector
    slopes: Vector
    covariance: Matrix
    noise: Vector


class Step(NamedTuple):
    """The indices of one or two times to measure next, and the regret of each job before and after.

    Jobs with a single way that may be the cheapest have no regret and are left out.
    """

    times: tuple[int, ...]
    before: Vector
    after: Vector


def steps(ways: Ways, dollars: Mapping[int, float], most: int) -> Iterator[Step]:
    """Yield steps with at most ``most`` times together; ends when no measurement saves regret.

    ``dollars`` has the prices of measurements by the index of the time. If a job's times share an
    unknown level, only two of them show a ratio, so pairs of times of a job are tried, too.
    """
    scenarios = _Scenarios(ways)
    sets = [(time, time) for time in dollars] + scenarios.pairs(dollars)
    firsts, seconds = np.array(sets, dtype=np.int64).reshape(-1, 2).T
    prices = np.array([max(sum(dollars[at] for at in {*times}), _LEAST_DOLLARS) for times in sets])
    saved, current = np.full(len(sets), np.inf), np.zeros(len(sets), bool)
    before = scenarios.regrets()
    while most > 0 and sets:
        if most == 1:
            saved[firsts != seconds], current[firsts != seconds] = -np.inf, True
        while not current[best := int(np.argmax(saved / prices))]:
            stale = np.flatnonzero(~current)
            some = stale[np.argsort(-saved[stale] / prices[stale], kind="stable")[:_AT_ONCE]]
            saved[some], current[some] = scenarios.savings(firsts[some], seconds[some]), True
        if saved[best] < _LEAST_SAVED:
            return
        times = tuple(dict.fromkeys(sets[best]))
        for time in times:
            # Other savings rarely grow with a measurement, so outdated ones are an upper bound.
            saved[scenarios.related(time, firsts) | scenarios.related(time, seconds)] = np.inf
            scenarios.measure(time)
        current[:] = False
        after = scenarios.regrets()
        yield Step(times, before, after)
        before, most = after, most - len(times)
        done = np.isin(firsts, times) | np.isin(seconds, times)
        saved[done], current[done] = -np.inf, True


class _Scenarios:
    """Draws of the true times, and of the expectations after the measurements so far.

    Each job is reduced to the ways that are cheapest in a draw or by the prediction.
    """

    def __init__(self, ways: Ways) -> None:
        self._covariance, self._noise = ways.covariance.copy(), ways.noise
        count = len(ways.covariance)
        diagonal = np.diag(ways.covariance)
        root = np.linalg.cholesky(ways.covariance + np.diag(_JITTER * diagonal + 1e-12))
        normals = standard_normals(_SEED, 2 * count)
        # Each draw and its mirror image, whose mean is exact.
        normals = np.concatenate([normals, -normals])
        self._true = normals[:, :count] @ root.T
        self._measured = self._true + normals[:, count:] * np.sqrt(ways.noise)
        self._expected = np.zeros_like(self._true)
        jobs = (np.flatnonzero(ways.jobs == job) for job in np.unique(ways.jobs))
        reduced = (self._reduced(ways, rows) for rows in jobs)
        self._jobs = [job for job in reduced if len(job.times) > 1]

    def _reduced(self, ways: Ways, rows: Labels) -> _Job:
        true = ways.costs[rows] + ways.slopes[rows] * self._true[:, ways.times[rows]]
        wins = np.bincount(true.argmin(axis=1), minlength=len(rows))
        wins[ways.costs[rows].argmin()] += len(true)
        likely = np.argsort(-wins, kind="stable")[: np.count_nonzero(wins)]
        some = rows[likely]
        excess = np.expm1(true[:, likely] - true.min(axis=1, keepdims=True))
        return _Job(ways.times[some], ways.costs[some], ways.slopes[some], excess)

    def pairs(self, measurable: Container[int]) -> list[tuple[int, int]]:
        """Pairs of measurable times of each job's likeliest ways."""
        pairs: dict[tuple[int, int], None] = {}
        for job in self._jobs:
            times = dict.fromkeys(time for time in job.times.tolist() if time in measurable)
            pairs |= dict.fromkeys(itertools.combinations([*times][:_RIVALS], 2))
        return list(pairs)

    def regrets(self) -> Vector:
        """The regret of each job after the measurements so far."""
        return np.array([self._regret_of(job)[0] for job in self._jobs])

    def savings(self, firsts: Labels, seconds: Labels) -> Vector:
        """The regret, summed over the jobs, that each pair of measurements would save now.

        The two measurements of a pair may be the same.
        """
        covariance, noise, errors = self._covariance, self._noise, self._measured - self._expected
        variances = covariance[firsts, firsts] + noise[firsts]
        shares = covariance[firsts, seconds] / variances
        rests = covariance[seconds, seconds] + noise[seconds] - shares**2 * variances
        surprises = errors[:, firsts] / variances
        further = np.where(
            firsts == seconds, 0.0, (errors[:, seconds] - shares * errors[:, firsts]) / rests
        )
        saved = np.zeros(len(firsts))
        for job in self._jobs:
            shifts = job.slopes[:, None] * covariance[np.ix_(job.times, firsts)]
            more = job.slopes[:, None] * covariance[np.ix_(job.times, seconds)] - shares * shifts
            sizes = np.ptp(shifts, axis=0) / np.sqrt(variances)
            sizes += np.where(firsts == seconds, 0.0, np.ptp(more, axis=0) / np.sqrt(rests))
            some = sizes > _LEAST_SHIFT
            if some.any():
                changes = (
                    first * surprises[:, some] + second * further[:, some]
                    for first, second in zip(shifts[:, some], more[:, some], strict=True)
                )
                saved[some] += self._regret_of(job) - self._regret_of(job, changes, some.sum())
        return saved

    def _regret_of(
        self, job: _Job, changes: Iterable[Matrix | float] = itertools.repeat(0.0), count: int = 1
    ) -> Vector:
        """Regret [count] of a job after ``changes`` [draws, count] of each way's expected cost."""
        expected = job.costs + job.slopes * self._expected[:, job.times]
        least = np.full((len(expected), count), np.inf)
        regret = np.zeros_like(least)
        for costs, excess, change in zip(expected.T, job.excess.T, changes, strict=False):
            seeming = costs[:, None] + change
            less = seeming < least
            np.copyto(least, seeming, where=less)
            np.copyto(regret, excess[:, None], where=less)
        mean: Vector = regret.mean(axis=0)
        return mean

    def related(self, time: int, others: Labels) -> NDArray[np.bool_]:
        """Mask of the times whose error is correlated with that of ``time``."""
        variances = np.diag(self._covariance) + self._noise
        shared = self._covariance[time, others] ** 2
        related: NDArray[np.bool_] = shared > _RELATED**2 * variances[time] * variances[others]
        return related

    def measure(self, time: int) -> None:
        """Reveal a time in every draw."""
        column = self._covariance[:, time].copy()
        variance = column[time] + self._noise[time]
        surprises = (self._measured - self._expected)[:, time] / variance
        self._expected += np.outer(surprises, column)
        self._covariance -= np.outer(column, column / variance)


class _Job(NamedTuple):
    """The ways of a job: as in ``Ways``, and the ``excess`` of true costs [draws, ways]."""

    times: Labels
    costs: Vector
    slopes: Vector
    excess: Matrix


def order_by_value(
    inputs: Inputs, cells: Sequence[MeasurableCell], most: int
) -> tuple[CellValue, ...]:
    """Name at most ``most`` cells to measure, those that save the most regret per dollar first.

    The answers are the machines where each model and mode of ``cells`` costs least. Cells without a
    predicted time are left out, and so are those that save nothing, such as all cells of a time
    that has been measured. Raises the errors of ``predict_times``.
    """
    modes = {(cell.model, cell.mode) for cell in cells}
    times = _times(inputs, sorted({model for model, _ in modes}))
    jobs = group_by(
        price_rows(inputs.catalogue, times.rows), lambda row: (row.observed.workload.id, row.mode)
    )
    answers = {key: _answers(jobs[key]) for key in sorted(modes & jobs.keys())}
    rows = [(job, row) for job, ranked in enumerate(answers.values()) for row in ranked]
    if not rows:
        return ()
    cheapest = _cheapest_cells(inputs, cells, times, [row for _, row in rows])
    dollars = {time: float(cell.dollars) for time, cell in cheapest.items()}
    return tuple(
        value
        for step in steps(_ways(rows, times), dollars, most)
        for value in _values([cheapest[time] for time in step.times], step)
    )


def _cheapest_cells(
    inputs: Inputs, cells: Sequence[MeasurableCell], times: JointTimes, rows: Sequence[Row]
) -> Mapping[int, MeasurableCell]:
    """The cheapest cell that measures each predicted time, by the index of the time."""
    places = {
        (observed.machine.hardware, observed.workload.id, observed.mode): times.rows[observed]
        for observed in (row.observed for row in rows)
        if observed.kind == "predicted"
    }
    cheapest: dict[int, MeasurableCell] = {}
    for cell in sorted(cells, key=lambda cell: cell.dollars):
        place = places.get((cell.machine, cell.model, cell.mode))
        if place is not None and inputs.catalogue.hardware[cell.machine].device == cell.provider:
            cheapest.setdefault(place, cell)
    return cheapest


def _values(cells: Sequence[MeasurableCell], step: Step) -> Iterator[CellValue]:
    """Average the regret over the answers that improve by at least a tenth of the best one's."""
    saved = step.before - step.after
    improved = saved >= saved.max() / 10
    before, after = (float(regrets[improved].mean()) for regrets in (step.before, step.after))
    for cell in cells:
        partner = next((other for other in cells if other is not cell), None)
        yield CellValue(cell, int(improved.sum()), before, after, partner)


def _times(inputs: Inputs, names: Sequence[str]) -> JointTimes:
    """Measured times in our runtime, whose errors are independent, and predictions for the rest."""
    models = inputs.catalogue.models
    joint = joint_times(inputs, [models[name] for name in names if name in models])
    measured = [each for each in observe(inputs, names) if each.stack == "onnxruntime"]
    predicted = Predictions(tuple(joint.rows), ()).missing_from(measured)
    rows = {observed: joint.rows[observed] for observed in predicted}
    rows |= {observed: len(joint.covariance) + at for at, observed in enumerate(measured)}
    errors = [
        deviations(observed.work(_GOALS[observed.mode]).time)[1] ** 2 for observed in measured
    ]
    return JointTimes(rows, block_diagonal(joint.covariance, np.diag(errors)))


def _answers(rows: Sequence[Row]) -> tuple[Row, ...]:
    """The cheapest row of each machine; rows with a caveat compete only if all have one."""
    ranked = ranking(rows, _GOALS[rows[0].mode])
    return tuple(row for row in ranked if not row.reservation) or ranked


def _ways(rows: Sequence[tuple[int, Row]], times: JointTimes) -> Ways:
    """Ways to do jobs from the number of each row's job and the row."""
    costs, slopes = [], []
    for _, row in rows:
        goal = _GOALS[row.mode]
        time, cost = row.time(goal), row.estimate(goal)
        assert time is not None, "an answer has a time"
        assert cost is not None, "an answer has a cost"
        low, mean, high = (
            math.log(max(float(at), 1e-12)) for at in (cost.low, cost.mean, cost.high)
        )
        width = math.log(time.high / time.low)
        costs.append(mean)
        slopes.append(min(max((high - low) / width, 0.0), 1.0) if width else 1.0)
    return Ways(
        jobs=np.array([job for job, _ in rows]),
        times=np.array([times.rows[row.observed] for _, row in rows]),
        costs=np.array(costs),
        slopes=np.array(slopes),
        covariance=times.covariance,
        noise=np.full(len(times.covariance), _NOISE**2),
    )
