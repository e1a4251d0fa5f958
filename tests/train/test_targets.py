"""Targets such as "accuracy >= 98 %", and when an evaluation meets them."""

from __future__ import annotations

import math

import pytest

from epochcost.errors import InputError
from epochcost.results.trainings import Point
from epochcost.train.loop import parse_target

POINT = Point(
    step=7,
    seconds=0.1,
    learning_rate=0.1,
    training_loss=None,
    loss=math.log(80),
    accuracy=0.975,
)


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ("accuracy >= 0.975", True),
        ("accuracy>=97.5%", True),
        ("accuracy >= 97.6 %", False),
        ("loss <= 4.4", True),
        ("loss <= 4.3", False),
    ],
)
def test_a_target_is_met_or_not(text: str, met: bool) -> None:
    """An accuracy target is a lower bound, a loss target an upper bound."""
    assert parse_target(text).met([POINT]) == met


@pytest.mark.parametrize(
    "text",
    [
        *("", "98", "accuracy", "accuracy <= 0.9", "loss >= 1", "accuracy >= 98", "accuracy >= 0"),
        *("perplexity <= 80", "f1 >= 0.9", "accuracy >= 0.9.1", "accuracy >= 0.9 and more"),
        "loss <= 5 %",
    ],
)
def test_another_target_is_refused(text: str) -> None:
    """A target is refused unless it is "accuracy >= SHARE" or "loss <= NUMBER"."""
    with pytest.raises(InputError, match="--target: expected"):
        parse_target(text)
