"""Order trials on machines by the regret that measuring them is expected to save per dollar.

Regret is the extra cost of the chosen machine, as a share of the lowest cost. Each cell (a trial on
a machine) is chosen as if the cells before it had been measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from epochcost.analysis.inputs import Inputs
from epochcost.analysis.observations import Goal, Observation, observe
from epochcost.analysis.odds import deviations
from epochcost.analysis.predicted import JointTimes, Predictions, joint_times
from epochcost.analysis.rows import Row, contenders, price_rows
from epochcost.plan.cell import Cell
from epochcost.predict.design import precision_of
from epochcost.predict.process import Labels, Matrix, Vector, block_diagonal
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.study import Mode
from epochcost.statistics import group_by
from epochcost.units import count_words, money, rounded

# A free measurement counts as this price, so that the best of several free ones comes first.
_LEAST_DOLLARS = 0.01
# Relative deviation of a time measured on another machine of the same kind.
_NOISE = 0.03
# Regret, summed over all answers, that is worth a measurement.
_LEAST_SAVED = 1e-4
_GOALS: Mapping[Mode, Goal] = MappingProxyType({"training": "full", "inference": "million"})
# Of the ways of a job, the cheapest is compared with this number of likely rivals.
_RIVALS = 9
# The highest price of measuring a cell, by the cell's kind.
Prices = Mapping[tuple[str, str], Decimal]


@dataclass(frozen=True, slots=True)
class CellsValue:
    """One or two ``cells`` to measure next, and the regret that measuring them saves.

    An answer is the choice of the cheapest machine for a model and mode. ``answers`` counts the
    answers that save at least a tenth of the largest saving; ``saved`` is the mean of their
    savings. Cells chosen earlier count as measured.
    """

    cells: tuple[Cell, ...]
    answers: int
    saved: float

    def sentence(self, prices: Prices, currency: str) -> str:
        """State the price and the benefit of the measurements."""
        cells = " and ".join(
            f"{cell.trial.model} {cell.trial.mode} on {cell.hardware}" for cell in self.cells
        )
        cost = money(sum((prices[cell.kind] for cell in self.cells), Decimal(0)), currency)
        return (
            f"measuring {cells} costs at most {cost} and is expected to cut the regret of "
            f"{count_words(self.answers, 'answer')} by {rounded(100 * self.saved, 2)} %"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Ways:
    """Ways to do jobs, as arrays of n ways; a way is a machine under a price plan.

    ``jobs`` [n] has the index of each way's job. ``costs`` [n] has the logarithm of each way's
    cost, which is proportional to the way's time. Several ways may share one of the t times.
    ``times`` [n] has the index of each way's time. ``covariance`` [t, t] is the covariance of the
    errors in the logarithms of the times.
    """

    jobs: Labels
    times: Labels
    costs: Vector
    covariance: Matrix


class Step(NamedTuple):
    """Indices of the one or two times to measure next, and the regret ``saved`` for each job."""

    times: tuple[int, ...]
    saved: Vector


class _RivalPairs:
    """Pairs of a job's cheapest way and a likely rival, as arrays of r pairs.

    ``gaps`` [r] has the logarithm of each rival's cost divided by the cheapest cost. Each gap
    has an error, because times are uncertain. ``first_pairs`` has the index of each job's first
    pair.
    """

    def __init__(self, ways: Ways) -> None:
        variances, pairs = np.diag(ways.covariance), list[tuple[int, int]]()
        self.first_pairs: list[int] = []
        for job in np.unique(ways.jobs):
            rows = np.flatnonzero(ways.jobs == job)
            best = rows[ways.costs[rows].argmin()]
            rivals = rows[rows != best]
            time, times = ways.times[best], ways.times[rivals]
            errors = variances[time] + variances[times] - 2 * ways.covariance[time, times]
            values = _saved_regret(ways.costs[rivals] - ways.costs[best], errors)
            likely = rivals[np.argsort(-values, kind="stable")[:_RIVALS]]
            self.first_pairs += [len(pairs)] if len(likely) else []
            pairs += [(best, rival) for rival in likely]
        cheapest, others = np.array(pairs, int).reshape(-1, 2).T
        self.cheapest_times, self.rival_times = ways.times[cheapest], ways.times[others]
        self.gaps = ways.costs[others] - ways.costs[cheapest]

    def measurable_pairs(self, measurable: Set[int]) -> list[tuple[int, ...]]:
        """Pairs of ``measurable`` times, as indices: of a job's cheapest way and of a rival.

        If both share a time, its index is alone.
        """
        pairs = zip(self.cheapest_times.tolist(), self.rival_times.tolist(), strict=True)
        return [tuple(dict.fromkeys(pair)) for pair in pairs if {*pair} <= measurable]

    def variances(self, errors: Matrix) -> Vector:
        """The variance [r] of each gap's error, from independent parts [t, k] of times' errors."""
        of_gaps = errors[self.rival_times] - errors[self.cheapest_times]
        variances: Vector = (of_gaps**2).sum(axis=1)
        return variances

    def saved_regret(self, variances: Matrix) -> Matrix:
        """Regret [jobs, k] that each of k measurements is expected to save.

        Column j of ``variances`` [r, k] has the variances of the corrections of the gaps by
        measurement j.
        """
        saving = _saved_regret(self.gaps[:, None], variances)
        values: Matrix = np.maximum.reduceat(saving, self.first_pairs, axis=0)
        return values


def _saved_regret(gaps: Vector | Matrix, variances: Vector | Matrix) -> Matrix:
    """The regret that measurements are expected to save by correcting predicted cost ratios.

    ``gaps`` has the logarithms of the ratios of a rival's cost to the cheapest cost. Measuring adds
    a random correction to each gap; ``variances`` has the variances of the corrections. Their
    distribution is assumed to be logistic, so that the expected saving has a closed form.
    """
    scales = np.sqrt(3 * np.maximum(variances, 1e-12)) / math.pi
    saving: Matrix = scales * np.logaddexp(0, -gaps / scales)
    return saving


def steps(
    ways: Ways, dollars: Mapping[int, float], most: int, noise: float = _NOISE**2
) -> Iterator[Step]:
    """Choose which times to measure, those that save most regret per dollar first.

    Regret is the extra cost of the machine that the current times suggest, compared with the truly
    cheapest machine. Each step has the indices of one or two times in ``ways``. All steps together
    have at most ``most`` times. The steps end when no measurement saves noticeable regret.
    ``dollars`` has the price of each possible measurement, by index. ``noise`` is the variance of a
    measured time's relative error.
    """
    rivals, covariance = _RivalPairs(ways), ways.covariance
    # By how much the measurements chosen so far reduce the variance of each gap's error.
    known = np.zeros((len(rivals.gaps), 1))
    # Pairs are tried too: if all times of a job share an unknown error, a single time does not show
    # which machine is cheaper.
    singles = ((time,) for time in dollars)
    sets = [*dict.fromkeys((*singles, *rivals.measurable_pairs(dollars.keys())))]
    while rivals.first_pairs and (sets := [each for each in sets if len(each) <= most]):
        prices = [max(sum(dollars[time] for time in each), _LEAST_DOLLARS) for each in sets]
        errors = [_revealed_errors(covariance, each, noise) for each in sets]
        revealed = np.column_stack([rivals.variances(each) for each in errors])
        saved = rivals.saved_regret(known + revealed) - rivals.saved_regret(known)
        best = int(np.argmax(saved.sum(axis=0) / prices))
        if saved[:, best].sum() < _LEAST_SAVED:
            return
        times = sets[best]
        yield Step(times, saved[:, best])
        known = known + revealed[:, [best]]
        covariance = covariance - errors[best] @ errors[best].T
        most -= len(times)
        sets = [each for each in sets if not {*times} & {*each}]


def _revealed_errors(covariance: Matrix, times: Sequence[int], noise: float) -> Matrix:
    """The part of all times' errors that measuring k ``times`` reveals, as k independent parts."""
    measured = covariance[np.ix_(times, times)] + noise * np.eye(len(times))
    return np.linalg.solve(np.linalg.cholesky(measured), covariance[[*times]]).T


def order_by_value(
    inputs: Inputs, cells: Sequence[Cell], prices: Prices, most: int
) -> tuple[CellsValue, ...]:
    """Choose at most ``most`` cells to measure, those that save most regret per dollar first.

    The regret is that of choosing the cheapest machine for each model and mode of ``cells``. Cells
    that save nothing are not chosen, nor are cells without a predicted time, such as cells whose
    time has been measured. Raises InputError for a table of published rates that cannot be read.
    """
    works = {(cell.trial.model, cell.trial.mode) for cell in cells}
    times = _measured_or_predicted_times(inputs, sorted({model for model, _ in works}))
    priced = price_rows(inputs.catalogue, times.rows)
    jobs = group_by(priced, lambda row: (row.observed.workload.id, row.mode))
    answers = [contenders(jobs[work], _GOALS[work[1]]) for work in sorted(works & jobs.keys())]
    rows = [(job, row) for job, ranked in enumerate(answers) for row in ranked]
    if not rows:
        return ()
    ways = Ways(
        jobs=np.array([job for job, _ in rows]),
        times=np.array([times.rows[row.observed] for _, row in rows]),
        costs=np.array([_log_cost(row) for _, row in rows]),
        covariance=times.covariance,
    )
    indices = {row.observed: times.rows[row.observed] for _, row in rows}
    cheapest = _best_cell_by_time(inputs.catalogue, cells, prices, indices)
    dollars = {time: float(prices[cell.kind]) for time, cell in cheapest.items()}
    values = []
    for step in steps(ways, dollars, most):
        # The answers that the measurement improves by at least a tenth of the best improvement.
        improved = step.saved[step.saved >= step.saved.max() / 10]
        chosen = tuple(cheapest[time] for time in step.times)
        values.append(CellsValue(chosen, len(improved), float(improved.mean())))
    return tuple(values)


def _best_cell_by_time(
    catalogue: Catalogue, cells: Iterable[Cell], prices: Prices, times: Mapping[Observation, int]
) -> Mapping[int, Cell]:
    """For each predicted time, the best cell to measure it.

    Trials in the prediction's precision come first, then low prices, then large batches.
    """
    predicted = {
        (observed.machine.hardware, observed.workload.id, observed.mode): observed
        for observed in times
        if observed.kind == "predicted"
    }
    measuring = [
        (cell, observed)
        for cell in cells
        if (observed := predicted.get((cell.hardware, cell.trial.model, cell.trial.mode)))
        if catalogue.hardware[cell.hardware].device == cell.trial.provider
    ]

    def rank(pair: tuple[Cell, Observation]) -> tuple[bool, Decimal, int]:
        cell, observed = pair
        other = precision_of(cell.trial.precision) != observed.precision
        return other, prices[cell.kind], -cell.trial.batch_size

    by_time = group_by(measuring, lambda pair: times[pair[1]])
    return {time: min(pairs, key=rank)[0] for time, pairs in by_time.items()}


def _measured_or_predicted_times(inputs: Inputs, workloads: Sequence[str]) -> JointTimes:
    """Measured, else predicted times of ``workloads``; errors of measured times are independent."""
    models = inputs.catalogue.models
    joint = joint_times(inputs, [models[name] for name in workloads if name in models])
    measured = [each for each in observe(inputs, workloads) if each.stack == "onnxruntime"]
    predicted = Predictions(tuple(joint.rows), ()).missing_from(measured)
    rows = {observed: joint.rows[observed] for observed in predicted}
    rows |= {observed: len(joint.covariance) + at for at, observed in enumerate(measured)}
    errors = [
        deviations(observed.work(_GOALS[observed.mode]).time)[1] ** 2 for observed in measured
    ]
    return JointTimes(rows, block_diagonal(joint.covariance, np.diag(errors)))


def _log_cost(row: Row) -> float:
    cost = row.estimate(_GOALS[row.mode])
    assert cost is not None, "an answer has a cost"
    return math.log(max(float(cost.mean), 1e-12))
