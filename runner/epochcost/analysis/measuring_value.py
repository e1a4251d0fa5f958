"""Order trials on machines by the regret that measuring them is expected to save per dollar.

Regret is the extra cost of the chosen machine, as a share of the lowest cost. Each cell (a trial on
a machine) is chosen as if the cells before it had been measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from epochcost.analysis.inputs import Inputs
from epochcost.analysis.observations import Goal, Observation, observe
from epochcost.analysis.odds import deviations
from epochcost.analysis.predicted import JointTimes, joint_times, missing_from
from epochcost.analysis.rows import Row, contenders, price_rows
from epochcost.plan.cell import Cell
from epochcost.predict.design import precision_of
from epochcost.predict.process import Labels, Matrix, Vector, block_diagonal
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.study import Mode
from epochcost.statistics import group_by
from epochcost.units import money, render_count, rounded

# A free measurement counts as this price, so that the best of several free ones comes first.
_LEAST_DOLLARS = 0.01
# Relative deviation of a time measured on another machine of the same kind.
_NOISE = 0.03
# Regret, summed over all answers, that is worth a measurement.
_LEAST_SAVED = 1e-4
_GOALS: Mapping[Mode, Goal] = {"training": "full", "inference": "million"}
# Of the ways of a job, the cheapest is compared with this number of likely rivals.
_RIVALS = 9
# The ways to do a job, the cheapest first; a way is a machine under a price plan. Each way has the
# index of its time, and the logarithm of its cost, which is proportional to the time. Several ways
# may share a time.
Ways = Sequence[tuple[int, float]]
# The highest price of measuring a cell, by the cell's kind.
Prices = Mapping[tuple[str, str, str], Decimal]


@dataclass(frozen=True, slots=True)
class CellsValue:
    """One or two cells to measure next, and what measuring them improves.

    An answer is the choice of the cheapest machine for a model and mode. ``answers`` counts the
    answers whose expected regret falls by at least a tenth of the largest fall. ``saved`` is the
    mean of these falls, if all cells chosen earlier have been measured.
    """

    cells: tuple[Cell, ...]
    answers: int
    saved: float

    def sentence(self, prices: Prices, currency: str) -> str:
        """State the price and the benefit of the measurements."""
        works = (f"{cell.trial.model} {cell.trial.mode} on {cell.hardware}" for cell in self.cells)
        cost = money(sum((prices[cell.kind] for cell in self.cells), Decimal(0)), currency)
        return (
            f"measuring {' and '.join(works)} costs at most {cost} and is expected to cut the "
            f"regret of {render_count(self.answers, 'answer')} by {rounded(100 * self.saved, 2)} %"
        )


class Step(NamedTuple):
    """The one or two times to measure next, and the regret saved for each job.

    ``times`` has indices in the covariance of all times: two if only both together show which
    machine is cheaper. ``saved`` has an element for each job that several machines can do.
    """

    times: tuple[int, ...]
    saved: Vector


def _saved_regret(gaps: Vector | Matrix, variances: Vector | Matrix) -> Matrix:
    """The expected saving for each rival, if measurements that favour it lead to a switch to it.

    ``gaps`` has log(rival's cost / cheapest cost). Measurements change each gap by a random amount,
    assumed logistic with mean 0 and these ``variances``. A saving is a fall of log(cost).
    """
    scales = np.sqrt(3 * np.maximum(variances, 1e-12)) / math.pi
    saving: Matrix = scales * np.logaddexp(0, -gaps / scales)
    return saving


def _likely_rivals(ways: Ways, covariance: Matrix) -> tuple[Labels, Labels, Matrix]:
    """Pair a job's cheapest machine with the rivals that measurements may show to be cheaper.

    At most nine rivals are kept: those to which a switch is expected to save most. Returns the rows
    in ``covariance`` [t, t] of the cheapest machine's and of the rivals' times, [r] each. The third
    array, [r, 1], has log(rival's cost / cheapest cost).
    """
    times, costs = map(np.array, zip(*ways, strict=True))
    best, rivals, gaps = times[0], times[1:], costs[1:] - costs[0]
    variances = np.diag(covariance)
    errors = variances[best] + variances[rivals] - 2 * covariance[best, rivals]
    likely = np.argsort(-_saved_regret(gaps, errors), kind="stable")[:_RIVALS]
    return np.full(len(likely), best), rivals[likely], gaps[likely, None]


def steps(
    jobs: Iterable[Ways],
    covariance: Matrix,
    dollars: Mapping[int, float],
    most: int,
    noise: float = _NOISE**2,
) -> Iterator[Step]:
    """Choose which times to measure, those that save most regret per dollar first.

    ``covariance`` [t, t] is that of the errors in the logarithms of the t times, which are
    identified by their rows. A step names one time, or two that together show which of two machines
    is cheaper. All steps together name at most ``most`` times. They end when no measurement saves
    noticeable regret. ``dollars`` has the price of each time that can be measured. ``noise`` is the
    variance of a measured time's relative error.
    """
    pairs = [_likely_rivals(ways, covariance) for ways in jobs if len(ways) > 1]
    if not pairs:
        return
    cheapest, rivals, gaps = (np.concatenate(each) for each in zip(*pairs, strict=True))
    first_pairs = np.cumsum([0, *(len(each) for each, *_ in pairs[:-1])])
    # By how much the measurements chosen so far reduce the variance of each gap's error.
    known = np.zeros_like(gaps)
    before = np.maximum.reduceat(_saved_regret(gaps, known), first_pairs, axis=0)
    # Pairs are tried too: if all times of a job share an unknown error, a single time does not show
    # which machine is cheaper.
    both = zip(cheapest.tolist(), rivals.tolist(), strict=True)
    doubles = (tuple(dict.fromkeys(pair)) for pair in both if {*pair} <= dollars.keys())
    sets = [*dict.fromkeys((*((time,) for time in dollars), *doubles))]
    while sets := [each for each in sets if len(each) <= most]:
        gap_errors = covariance[:, rivals] - covariance[:, cheapest]
        parts = (_revealed_parts(covariance, gap_errors, times, noise) for times in sets)
        revealed = np.column_stack([(each**2).sum(axis=0) for each in parts])
        after = np.maximum.reduceat(_saved_regret(gaps, known + revealed), first_pairs, axis=0)
        saved = after - before
        prices = [max(sum(dollars[time] for time in times), _LEAST_DOLLARS) for times in sets]
        best = int(np.argmax(saved.sum(axis=0) / prices))
        if saved[:, best].sum() < _LEAST_SAVED:
            return
        chosen = sets[best]
        yield Step(chosen, saved[:, best])
        known, before = known + revealed[:, [best]], after[:, [best]]
        errors = _revealed_parts(covariance, covariance, chosen, noise)
        covariance = covariance - errors.T @ errors
        most -= len(chosen)
        sets = [times for times in sets if not {*times} & {*chosen}]


def _revealed_parts(
    covariance: Matrix, errors: Matrix, times: Sequence[int], noise: float
) -> Matrix:
    """Compute how measurements of k times reduce the variances of r errors, as an array [k, r].

    The sum of the squares in a column is the reduction of one error's variance. ``times`` has the
    rows of the k times in ``covariance`` [t, t]. ``errors`` [t, r] has the covariances of the
    errors with all times. ``noise`` is the variance of a measured time's error.
    """
    measured = covariance[np.ix_(times, times)] + noise * np.eye(len(times))
    parts: Matrix = np.linalg.solve(np.linalg.cholesky(measured), errors[[*times]])
    return parts


def order_by_value(
    inputs: Inputs, cells: Sequence[Cell], prices: Prices, most: int
) -> tuple[CellsValue, ...]:
    """Choose at most ``most`` cells to measure, those that save most regret per dollar first.

    Cells that save nothing, are already measured or have no prediction are left out. Raises
    InputError for a table of published speeds that cannot be read.
    """
    works = {(cell.trial.model, cell.trial.mode) for cell in cells}
    times = _measured_or_predicted_times(inputs, sorted({model for model, _ in works}))
    priced = price_rows(inputs.catalogue, times.rows)
    rows = group_by(priced, lambda row: (row.observed.workload.id, row.mode))
    answers = [contenders(rows[work], _GOALS[work[1]]) for work in sorted(works & rows.keys())]
    indices = {row.observed: times.rows[row.observed] for ranked in answers for row in ranked}
    jobs = [[(indices[row.observed], _log_cost(row)) for row in ranked] for ranked in answers]
    cheapest = _best_cell_by_time(inputs.catalogue, cells, prices, indices)
    dollars = {time: float(prices[cell.kind]) for time, cell in cheapest.items()}
    values = []
    for step in steps(jobs, times.covariance, dollars, most):
        # The answers that the measurement improves by at least a tenth of the best improvement.
        improved = step.saved[step.saved >= step.saved.max() / 10]
        chosen = tuple(cheapest[time] for time in step.times)
        values.append(CellsValue(chosen, len(improved), float(improved.mean())))
    return tuple(values)


def _best_cell_by_time(
    catalogue: Catalogue, cells: Iterable[Cell], prices: Prices, times: Mapping[Observation, int]
) -> Mapping[int, Cell]:
    """Map the index of each predicted time to the best cell to measure it.

    Cells in the prediction's precision are preferred, then cheaper cells, then larger batches.
    """
    predicted = {
        (observed.machine.hardware, observed.workload.id, observed.mode): (observed, time)
        for observed, time in times.items()
        if observed.kind == "predicted"
    }
    choices = []
    for cell in cells:
        trial, machine = cell.trial, cell.hardware
        prediction = predicted.get((machine, trial.model, trial.mode))
        if prediction and catalogue.hardware[machine].device == trial.provider:
            other = precision_of(trial.precision) != prediction[0].precision
            choices.append((prediction[1], (other, prices[cell.kind], -trial.batch_size), cell))
    by_time = group_by(choices, itemgetter(0))
    return {time: min(group, key=itemgetter(1))[2] for time, group in by_time.items()}


def _measured_or_predicted_times(inputs: Inputs, workloads: Sequence[str]) -> JointTimes:
    """The measured time of each of ``workloads`` on each machine, or else the predicted time.

    The error of a measured time is assumed to be independent of the errors of all other times.
    """
    models = inputs.catalogue.models
    joint = joint_times(inputs, [models[name] for name in workloads if name in models])
    measured = [each for each in observe(inputs, workloads) if each.stack == "onnxruntime"]
    rows = {observed: joint.rows[observed] for observed in missing_from(measured, joint.rows)}
    rows |= {observed: len(joint.covariance) + at for at, observed in enumerate(measured)}
    times = (observed.work(_GOALS[observed.mode]).time for observed in measured)
    errors = [deviations(time)[1] ** 2 for time in times]
    return JointTimes(rows, block_diagonal(joint.covariance, np.diag(errors)))


def _log_cost(row: Row) -> float:
    cost = row.estimate(_GOALS[row.mode])
    assert cost is not None, "an answer has a cost"
    return math.log(max(float(cost.mean), 1e-12))
