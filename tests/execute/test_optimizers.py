"""Specs' optimizers become the differentiator's rules."""

from __future__ import annotations

from decimal import Decimal

import pytest

import onnxstep
from epochcost.execute.step import update_rule
from epochcost.specs import training as spec

RATE = Decimal("0.5")


@pytest.mark.parametrize(
    ("declared", "rule"),
    [
        (spec.Sgd(name="sgd", learning_rate=RATE), onnxstep.Sgd()),
        (
            spec.Sgd(name="sgd", learning_rate=RATE, momentum=Decimal("0.9"), nesterov=True),
            onnxstep.Momentum(0.9, nesterov=True),
        ),
        (
            spec.Adam(name="adamw", epsilon=Decimal("1e-6"), weight_decay=Decimal("0.1")),
            onnxstep.Adam(epsilon=1e-6, weight_decay=0.1, decoupled=True),
        ),
    ],
)
def test_a_rule_follows_from_its_name_and_momentum(declared: spec.Optimizer, rule: object) -> None:
    """Momentum makes another rule of SGD, the name adamw another of Adam."""
    assert update_rule(declared) == rule
