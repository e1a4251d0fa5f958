"""Specs' optimizers become the differentiator's rules, setting by setting."""

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
            spec.Sgd(name="sgd", learning_rate=RATE, momentum=Decimal("0.9")),
            onnxstep.Momentum(0.9),
        ),
        (
            spec.RmsProp(name="rmsprop", rho=Decimal("0.8"), epsilon=Decimal("1e-3")),
            onnxstep.RmsProp(rho=0.8, epsilon=1e-3),
        ),
        (
            spec.RmsProp(name="rmsprop", momentum=Decimal("0.7"), weight_decay=Decimal("0.1")),
            onnxstep.RmsProp(rho=0.9, epsilon=1e-7, momentum=0.7, weight_decay=0.1),
        ),
        (
            spec.Adadelta(name="adadelta", rho=Decimal("0.8"), epsilon=Decimal("1e-3")),
            onnxstep.Adadelta(rho=0.8, epsilon=1e-3),
        ),
        (
            spec.Sgd(
                name="sgd",
                learning_rate=RATE,
                momentum=Decimal("0.9"),
                nesterov=True,
                weight_decay=Decimal("1e-4"),
            ),
            onnxstep.Momentum(0.9, nesterov=True, weight_decay=1e-4),
        ),
        (
            spec.Sgd(name="sgd", learning_rate=RATE, weight_decay=Decimal("1e-4")),
            onnxstep.Sgd(weight_decay=1e-4),
        ),
        (
            spec.Adagrad(
                name="adagrad",
                epsilon=Decimal("1e-3"),
                initial_accumulator=Decimal(1),
                weight_decay=Decimal("0.1"),
            ),
            onnxstep.Adagrad(epsilon=1e-3, initial_accumulator=1.0, weight_decay=0.1),
        ),
        (
            spec.Adam(name="adam", beta1=Decimal("0.5"), beta2=Decimal("0.9")),
            onnxstep.Adam(beta1=0.5, beta2=0.9),
        ),
        (
            spec.Adam(name="adamw", epsilon=Decimal("1e-6"), weight_decay=Decimal("0.1")),
            onnxstep.Adam(epsilon=1e-6, weight_decay=0.1, decoupled=True),
        ),
    ],
)
def test_every_setting_is_carried_over(declared: spec.Optimizer, rule: object) -> None:
    """The rule has the spec's settings and not its own defaults."""
    assert update_rule(declared) == rule
