"""Build the training step that a model's spec declares, from a graph with a fixed batch size."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx

from epochcost.errors import CapabilityError
from epochcost.execute.job_files import save_arrays, save_graph
from epochcost.graphs.counting import flops
from epochcost.graphs.in_place import in_place_updates
from epochcost.measure.job import CarriedValue, Evaluation
from epochcost.measure.placement import HALF_TYPES, HEAVY_OPERATORS
from epochcost.plan.trial import Trial
from epochcost.specs import study
from epochcost.specs import training as spec
from epochcost.specs.model import Model, Training
from epochcost.specs.study import Provider
from epochcost.specs.training import LossTerm
from epochcost.train.batches import held_out_pool
from epochcost.train.teacher import IGNORED, Teacher
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
    evaluation_graph,
    training_step,
)
from onnxstep.graphs.precision import allowed_outputs
from onnxstep.losses import SoftmaxCrossEntropy
from onnxstep.optimizers import Optimizer

# Processors for which ONNX Runtime has convolutions on channels in blocks.
_X86 = frozenset({"x86_64", "AMD64"})


def loss_terms(training: Training) -> list[Term]:
    """The terms of the loss in the form that onnxstep expects, the main term first."""
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


def update_rule(optimizer: spec.Optimizer) -> Optimizer:
    """The update rule of onnxstep with the optimizer's settings, except the learning rate.

    Specs and onnxstep both follow PyTorch's formulas, so that the settings are the same.
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
            return Momentum(settings["momentum"], optimizer.nesterov, weight_decay=decay)
        case spec.RmsProp():
            return RmsProp(**settings)
        case spec.Adagrad():
            return Adagrad(**settings)
        case spec.Adadelta():
            return Adadelta(**settings)
        case spec.Adam():
            return Adam(**settings, decoupled=optimizer.name == "adamw")


def step_options(
    model: Model,
    training: Training,
    provider: Provider,
    seed: int | None = None,
    precision: Precision = "fp32",
) -> StepOptions:
    """The settings of the training step that a spec declares; ``seed`` makes Dropout repeatable."""
    return StepOptions(
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
    )


def carried_values(step: TrainingStep, provider: Provider) -> tuple[CarriedValue, ...]:
    """The values that a step passes to the next step, in place if the provider allows it."""
    places = in_place_inputs(step, provider)
    return tuple(
        CarriedValue(input=c.input, output=c.output, fill=c.fill, in_place=c.input in places)
        for c in step.carried
    )


def in_place_inputs(step: TrainingStep, provider: Provider) -> frozenset[str]:
    """Names of the inputs that a step may overwrite; none on CUDA, where this is untested."""
    if provider != "cpu":
        return frozenset()
    return in_place_updates(step.model, {value.input: value.output for value in step.carried})


# Other trials, such as those in TF32, which is a setting of the provider, have a step in fp32.
_HALF_STEPS: Mapping[study.Precision, Precision] = {"fp16": "fp16", "bf16": "bf16"}


def fp32_step_path(
    trial: Trial, graph: onnx.ModelProto, model: Model, training: Training, path: Path
) -> Path:
    """Path of the step in fp32: ``path`` for fp32 and TF32 trials, else a new file beside it."""
    if trial.precision not in _HALF_STEPS:
        return path
    options = step_options(model, training, trial.provider, trial.seed)
    fp32 = training_step(graph, options)
    return save_graph(fp32.model, path.with_name("step-fp32.onnx"))


def step_in_precision(
    trial: Trial, graph: onnx.ModelProto, model: Model, training: Training
) -> TrainingStep:
    """Differentiate a graph and add the updates that the spec declares, in a trial's precision.

    Raises CapabilityError if a heavy operator, such as MatMul, has no form in that precision.
    """
    precision = _HALF_STEPS.get(trial.precision, "fp32")
    options = step_options(model, training, trial.provider, trial.seed, precision)
    step = training_step(graph, options)
    _require_half_precision_forms(step.model, trial)
    return step


def _require_half_precision_forms(step: onnx.ModelProto, trial: Trial) -> None:
    if trial.precision not in HALF_TYPES:
        return
    half = HALF_TYPES[trial.precision]
    opset = max(entry.version for entry in step.opset_import if not entry.domain)
    heavy = {n.op_type: n for n in step.graph.node if n.op_type in HEAVY_OPERATORS and not n.domain}
    # Without such a form, the operator and its gradient would stay in fp32.
    without = sorted(
        name
        for name, node in heavy.items()
        if not any(allowed_outputs(node, onnx.defs.get_schema(name, opset, ""), half))
    )
    if without:
        raise CapabilityError(
            f"{trial.precision}: expected a half form of {', '.join(without)}; ONNX has none at "
            f"opset {opset}, or ONNX Runtime no kernel: export {trial.model} at a newer opset (22 "
            "has most), or measure it in another precision"
        )


def write_evaluation(
    graph: onnx.ModelProto, training: Training, teacher: Teacher, batch_size: int, folder: Path
) -> Evaluation:
    """Write held-out batches, and a graph that computes the loss of a batch, into ``folder``."""
    with_loss = evaluation_graph(
        graph, loss=loss_terms(training), batch_statistics=True, freeze=training.freeze
    )
    batches = held_out_pool(teacher, batch_size, flops(with_loss))
    return Evaluation(
        graph=save_graph(with_loss, folder / "evaluation.onnx"),
        batches=save_arrays(batches, folder / "held-out.npz"),
        loss="loss",
    )
