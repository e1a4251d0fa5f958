"""The order of measurements: what they save, on hand-made jobs and on the project's catalogue."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from statistics import NormalDist

import numpy as np
import pytest

from epochcost.analysis.inputs import Inputs
from epochcost.analysis.measuring_value import (
    CellsValue,
    Ways,
    order_by_value,
    steps,
)
from epochcost.plan.cell import Cell
from epochcost.plan.trial import Trial
from epochcost.specs.study import Provider

_MODEL = "resnet50"
_MACHINES = ("lambda-1x-gh200", "lambda-2x-b200-sxm6", "gcp-v100", "c5.18xlarge")


_NO_NOISE = 1e-9


def _jobs(*costs: list[float]) -> list[Ways]:
    """Jobs with a cost for each way; times are numbered through all jobs."""
    numbers = itertools.count()
    return [[(next(numbers), cost) for cost in job] for job in costs]


def test_a_measurement_that_reveals_the_only_unknown_saves_all_regret() -> None:
    """The saving is that of a normal error by its formula; nothing is left to save after it."""
    gap, deviation = 0.1, 0.3
    covariance = np.diag([1e-9, deviation**2])
    (step,) = steps(_jobs([0.0, gap]), covariance, {0: 1.0, 1: 1.0}, 5, _NO_NOISE)
    # E[max(-x, 0)] for a normal x with mean gap.
    normal, z = NormalDist(), gap / deviation
    expected = deviation * normal.pdf(z) - gap * normal.cdf(-z)
    assert step.times == (1,)
    assert step.saved.sum() == pytest.approx(expected, rel=0.1)


def test_times_with_a_shared_unknown_level_are_measured_in_pairs() -> None:
    """One time cannot show a ratio if the level may be anything; two can."""
    covariance = 36 * np.ones((2, 2)) + 0.04 * np.eye(2)
    jobs = _jobs([0.0, 0.05])
    (step,) = steps(jobs, covariance, {0: 1.0, 1: 1.0}, 3, _NO_NOISE)
    assert sorted(step.times) == [0, 1]
    assert not list(steps(jobs, covariance, {0: 1.0, 1: 1.0}, 1, _NO_NOISE))


def test_a_measurement_also_informs_other_jobs_of_the_machine() -> None:
    """An error that two jobs share on a machine is corrected for both."""
    shared = np.zeros((4, 4))
    shared[np.ix_([1, 3], [1, 3])] = 0.09
    jobs, covariance = _jobs([0.0, 0.05], [0.0, 0.05]), shared + 1e-4 * np.eye(4)
    first, second = next(steps(jobs, covariance, {1: 1.0}, 1, _NO_NOISE)).saved
    assert first == pytest.approx(second, rel=0.01)
    assert first > 0.05


def test_the_better_of_two_equal_measurements_is_the_less_expensive() -> None:
    """Savings are compared per dollar, and free measurements come first."""
    covariance = np.diag([1e-9, 0.09, 1e-9, 0.09])
    jobs = _jobs([0.0, 0.05], [0.0, 0.05])
    for prices in ({1: 2.0, 3: 1.0}, {1: 1.0, 3: 0.0}):
        assert [step.times for step in steps(jobs, covariance, prices, 2)] == [(3,), (1,)]


def test_nothing_is_measured_if_times_are_known() -> None:
    """A time that is known already has no measurement worth money."""
    assert not list(steps(_jobs([0.0, 0.1]), 1e-9 * np.eye(2), {0: 1.0, 1: 1.0}, 2))


@pytest.fixture(scope="module")
def inputs(own_inputs: Inputs, tmp_path_factory: pytest.TempPathFactory) -> Inputs:
    """The project's catalogue and results, with a cache for the forecasts."""
    return replace(own_inputs, cache=tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def cells(inputs: Inputs) -> list[Cell]:
    """Inference in two batch sizes on some machines."""
    hardware = inputs.catalogue.hardware
    return [
        _cell(machine, _trial(batch, hardware[machine].device))
        for machine, batch in itertools.product(_MACHINES, (1, 2))
    ]


def _cell(machine: str, trial: Trial) -> Cell:
    return Cell((machine, trial.provider, ""), trial.id, trial, 1)


def _order(inputs: Inputs, cells: Sequence[Cell], most: int) -> tuple[CellsValue, ...]:
    """The order of the cells, each of which costs a dollar."""
    return order_by_value(
        inputs, cells, dict.fromkeys((cell.kind for cell in cells), Decimal(1)), most
    )


def _trial(batch: int, provider: Provider, model: str = _MODEL) -> Trial:
    return Trial(
        model=model,
        mode="inference",
        provider=provider,
        batch_size=batch,
        seed=0,
        runtime="onnxruntime==1.31.1",
        producer="0",
        graph_sha256="0" * 64,
        spec_sha256="0" * 64,
        relative_half_width=Decimal("0.1"),
        minimum_samples=10,
        budget_seconds=Decimal(1),
    )


@pytest.fixture(scope="module")
def values(inputs: Inputs, cells: list[Cell]) -> tuple[CellsValue, ...]:
    """The order of all these cells."""
    return _order(inputs, cells, 10)


def test_cells_are_ordered_and_each_saves_regret(values: tuple[CellsValue, ...]) -> None:
    """Each machine is named at most once, by its cell with the larger batch."""
    assert values
    named = [cell for value in values for cell in value.cells]
    assert len({cell.hardware for cell in named}) == len(named)
    assert {cell.trial.batch_size for cell in named} == {2}
    for value in values:
        assert value.answers == 1
        assert 0 < value.saved < 1


def test_a_sentence_says_what_a_dollar_buys(values: tuple[CellsValue, ...]) -> None:
    """The sentence names the work, the machines, the money in its currency and the regret."""
    cell, other = (replace(values[0].cells[0], kind=(name, "cuda", "")) for name in ("a", "b"))
    prices = {each.kind: Decimal(1) for each in (cell, other)}
    assert CellsValue((cell,), 3, 0.071).sentence(prices, "USD") == (
        "measuring resnet50 inference on a costs at most $1.00 and is expected to cut the "
        "regret of 3 answers by 7.1 %"
    )
    paired = CellsValue((cell, other), 1, 0.2).sentence(prices, "EUR")
    assert paired.startswith(
        "measuring resnet50 inference on a and resnet50 inference on b costs at most €2.00"
    )


def test_fewer_cells_are_the_first_of_more(
    inputs: Inputs, cells: list[Cell], values: tuple[CellsValue, ...]
) -> None:
    """The order is the same every time; only a pair may not fit."""
    few = _order(inputs, cells, 2)
    assert few == values[: len(few)]


def test_cells_without_a_prediction_have_no_value(inputs: Inputs, cells: list[Cell]) -> None:
    """The CPUs of a machine with a GPU, unknown models and machines are left out."""
    others = [
        *(
            _cell(cell.hardware, _trial(1, "cpu"))
            for cell in cells
            if cell.trial.provider == "cuda"
        ),
        _cell(cells[0].hardware, _trial(1, "cuda", "unknown")),
        _cell("unknown", cells[0].trial),
    ]
    assert _order(inputs, others, 5) == ()
