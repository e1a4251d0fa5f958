"""The nine light models of the onnx package become training steps that run and learn."""

from __future__ import annotations

import math

import pytest

from light_models import NAMES, losses

SMALLEST = "squeezenet"
BATCH_SIZE, STEPS, RATE = 2, 12, 2e-5


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[] if n == SMALLEST else [pytest.mark.slow]) for n in NAMES],
)
def test_the_loss_falls_on_data_from_a_teacher(name: str) -> None:
    """Steps of Adam on two batches, again and again, bring the loss on both down."""
    _, found = losses(name, BATCH_SIZE, STEPS, RATE)
    assert all(map(math.isfinite, found))
    assert sum(found[-2:]) < sum(found[:2])


def test_all_nine_are_there() -> None:
    """The onnx package still brings the nine models."""
    assert len(NAMES) == 9
