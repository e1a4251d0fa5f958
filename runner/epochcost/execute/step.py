"""The training step that a model's spec describes, on a graph that is bound to a batch size.

Its loss and its update rule are the spec's, as the differentiator knows them.
"""

from __future__ import annotations

import platform
from typing import Any

import onnx

from epochcost.measure.job import CarriedValue
from epochcost.specs import training as spec
from epochcost.specs.model import Model, Training
from epochcost.specs.study import Provider
from epochcost.specs.training import LossTerm
from epochcost.train.teacher import IGNORED
from onnxstep import (
    Adadelta,
    Adagrad,
    Adam,
    Momentum,
    Precision,
    RmsProp,
    Sgd,
    StepOptions,
    Term,
    TrainingStep,
    training_step,
)
from onnxstep.graphs.in_place import in_place_updates
from onnxstep.losses import SoftmaxCrossEntropy
from onnxstep.passes.recompute import Rematerialisation

# How processors call themselves for which ONNX Runtime has kernels of images in blocks of channels.
_X86 = frozenset({"x86_64", "AMD64"})


def loss_terms(training: Training) -> list[Term]:
    """The loss terms of the spec, the main one first."""
    return [_term(term) for term in training.terms]


def _term(term: LossTerm) -> Term:
    weight, target = float(term.weight), term.target
    if target is None or not (target.ignored_share or target.label_smoothing):
        return Term(term.loss, term.output, weight)
    loss = SoftmaxCrossEntropy(
        ignore_index=IGNORED if target.ignored_share else None,
        label_smoothing=float(target.label_smoothing),
    )
    return Term(loss, term.output, weight)


Rule = Sgd | Momentum | RmsProp | Adagrad | Adadelta | Adam


def update_rule(optimizer: spec.Optimizer) -> Rule:
    """The rule with the spec's settings; its learning rate is fed at each step and not part of it.

    Both sides follow PyTorch's formulas, so that settings carry over as they are.
    """
    settings: dict[str, Any] = {
        name: float(value)
        for name, value in optimizer.model_dump(exclude={"name", "learning_rate"}).items()
    }
    match optimizer:
        case spec.Sgd(momentum=momentum):
            decay = settings["weight_decay"]
            if not momentum:
                return Sgd(weight_decay=decay)
            return Momentum(settings["momentum"], optimizer.nesterov, decay)
        case spec.RmsProp():
            return RmsProp(**settings)
        case spec.Adagrad():
            return Adagrad(**settings)
        case spec.Adadelta():
            return Adadelta(**settings)
        case spec.Adam():
            return Adam(**settings, decoupled=optimizer.name == "adamw")


def build_step(
    graph: onnx.ModelProto,
    model: Model,
    training: Training,
    provider: Provider,
    seed: int | None = None,
    precision: Precision = "fp32",
    rematerialise: Rematerialisation = "none",
) -> TrainingStep:
    """Differentiate as the spec says; ``seed`` makes Dropout repeatable.

    No trial asks for ``rematerialise``: it is for steps that do not fit otherwise.

    Raises ModelError for names that the graph does not have, and for what has no gradient.
    """
    return training_step(
        graph,
        StepOptions(
            loss=loss_terms(training),
            optimizer=update_rule(training.optimizer),
            freeze=training.freeze,
            no_weight_decay=training.no_weight_decay,
            seed=seed,
            clip_norm=None if training.clip_norm is None else float(training.clip_norm),
            provider=provider,
            blocked_convolutions=platform.machine() in _X86,
            carry={carried.input: carried.output for carried in model.carried},
            precision=precision,
            rematerialise=rematerialise,
        ),
    )


def carried_values(step: TrainingStep, provider: Provider) -> tuple[CarriedValue, ...]:
    """The values that a step hands to the next, overwritten in place if the provider can."""
    places = in_place_inputs(step, provider)
    return tuple(
        CarriedValue(input=c.input, output=c.output, fill=c.fill, in_place=c.input in places)
        for c in step.carried
    )


def in_place_inputs(step: TrainingStep, provider: Provider) -> frozenset[str]:
    """The carried inputs that a step overwrites; none on CUDA, where it was never tried."""
    if provider != "cpu":
        return frozenset()
    return in_place_updates(step.model, {value.input: value.output for value in step.carried})
