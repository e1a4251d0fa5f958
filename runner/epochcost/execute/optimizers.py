"""The update rule that a model's spec names, as the differentiator knows it."""

from __future__ import annotations

from typing import Any

from epochcost.autodiff import Adadelta, Adagrad, Adam, Momentum, RmsProp, Sgd
from epochcost.specs import optimizer as spec

Rule = Sgd | Momentum | RmsProp | Adagrad | Adadelta | Adam


def update_rule(optimizer: spec.Optimizer) -> Rule:
    """The rule with the spec's settings; its learning rate is fed at each step and not part of it.

    Both sides follow PyTorch's formulas, so that settings carry over as they are.
    """
    settings = _settings(optimizer)
    match optimizer:
        case spec.Sgd():
            return _sgd(optimizer)
        case spec.RmsProp():
            return RmsProp(**settings)
        case spec.Adagrad():
            return Adagrad(**settings)
        case spec.Adadelta():
            return Adadelta(**settings)
        case spec.Adam():
            return Adam(**settings, decoupled=optimizer.name == "adamw")


def _sgd(optimizer: spec.Sgd) -> Sgd | Momentum:
    decay = float(optimizer.weight_decay)
    if not optimizer.momentum:
        return Sgd(weight_decay=decay)
    return Momentum(float(optimizer.momentum), optimizer.nesterov, decay)


def _settings(optimizer: spec.Optimizer) -> dict[str, Any]:
    settings = optimizer.model_dump(exclude={"name", "learning_rate"})
    return {name: float(value) for name, value in settings.items()}
