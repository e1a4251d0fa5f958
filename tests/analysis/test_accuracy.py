"""Steps that a training took, at the step times of other machines."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from epochcost.analysis.accuracy import price_steps
from epochcost.analysis.inputs import read_inputs
from epochcost.analysis.observations import Observation, observe
from epochcost.cost import Time
from epochcost.results.trainings import Point, Repeat, Trainings
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.loader import load_catalogue

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs/data/results/epyc-vm-2"


@pytest.fixture(scope="module", name="known")
def known_fixture() -> tuple[Catalogue, tuple[Observation, ...]]:
    """Our catalogue, and the times of its results and tables."""
    catalogue = load_catalogue(ROOT)
    inputs = read_inputs(catalogue, [RESULTS.parent], ROOT / "docs")
    return catalogue, observe(inputs)


def trainings(*steps: int) -> Trainings:
    """Repeats of the perceptron for MNIST that took so many steps."""
    point = Point(step=0, seconds=0, learning_rate=0.1, training_loss=None, loss=1.0, accuracy=0.5)
    repeats = tuple(
        Repeat(
            seed=seed,
            ending="epochs",
            steps=count,
            step_seconds=1.0,
            waiting_seconds=0.0,
            evaluation_seconds=0.0,
            saving_seconds=0.0,
            sessions=1,
            reached_step=None,
            curve=(point,),
            weights_sha256="0" * 64,
        )
        for seed, count in enumerate(steps)
    )
    return Trainings.model_construct(
        model="mnist-mlp", batch_size=128, repeats=repeats, hardware="elsewhere"
    )


def test_steps_are_priced_at_each_machines_step(
    known: tuple[Catalogue, tuple[Observation, ...]],
) -> None:
    """1,000 steps take a thousand times the step, and cost what such a job costs there."""
    catalogue, timed = known
    one = trainings(1000)
    rows = price_steps(catalogue, one, one.repeats, timed)
    assert {row.observed.batch_size for row in rows} == {128}
    assert {row.observed.workload.id for row in rows} == {"mnist-mlp"}
    for row in rows:
        step, full = row.observed.step, row.time("full")
        assert step is not None
        assert full is not None
        assert full.mean == 1000 * step.mean
        assert full.high == pytest.approx(1000 * step.high)
    assert any(row.estimate("full") for row in rows)
    assert {row.observed.kind for row in rows} >= {"measured"}


def test_uneven_repeats_widen_the_interval(
    known: tuple[Catalogue, tuple[Observation, ...]],
) -> None:
    """By the spread of their steps, in quadrature with the step's own."""
    catalogue, timed = known
    one = trainings(900, 1000, 1100)
    even, uneven = (
        price_steps(catalogue, one, repeats, timed)[0].time("full")
        for repeats in (one.repeats[1:2], one.repeats)
    )
    assert isinstance(even, Time)
    assert isinstance(uneven, Time)
    half = Decimal("4.303") * 100 / Decimal(3).sqrt() / 1000
    wide = ((even.high / even.mean - 1) ** 2 + half**2).sqrt()
    assert float(uneven.high / uneven.mean - 1) == pytest.approx(float(wide), rel=1e-3)
    assert 0 < uneven.low < even.low
