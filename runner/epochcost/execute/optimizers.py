"""The update rule that a model's spec names, as the differentiator knows it."""

from __future__ import annotations

from epochcost.autodiff import Adadelta, Momentum, RmsProp, Sgd
from epochcost.specs import model as spec


def update_rule(optimizer: spec.Optimizer) -> Sgd | Momentum | RmsProp | Adadelta:
    """The rule with the spec's settings; its learning rate is fed at each step and not part of it.

    Both sides follow PyTorch's formulas, so that settings carry over as they are.
    """
    match optimizer:
        case spec.Sgd():
            return Momentum(float(optimizer.momentum)) if optimizer.momentum else Sgd()
        case spec.RmsProp():
            return RmsProp(rho=float(optimizer.rho), epsilon=float(optimizer.epsilon))
        case spec.Adadelta():
            return Adadelta(rho=float(optimizer.rho), epsilon=float(optimizer.epsilon))
