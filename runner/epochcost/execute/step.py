"""The training step that a model's spec describes, on a graph that is bound to a batch size."""

from __future__ import annotations

import onnx

from epochcost.autodiff import Precision, TrainingStep, training_step
from epochcost.autodiff.checkpoint import Checkpoint
from epochcost.execute.losses import loss_terms
from epochcost.execute.optimizers import update_rule
from epochcost.graphs.in_place import written_in_place
from epochcost.specs.model import Model, Training
from epochcost.specs.study import Provider


def step_of(
    graph: onnx.ModelProto,
    model: Model,
    training: Training,
    provider: Provider,
    seed: int | None = None,
    precision: Precision = "fp32",
    checkpoint: Checkpoint = "none",
) -> TrainingStep:
    """Differentiate as the spec says; ``seed`` makes Dropout repeatable.

    No trial asks for ``checkpoint``: it is for steps that do not fit otherwise.

    Raises ModelError for names that the graph does not have, and for what has no gradient.
    """
    return training_step(
        graph,
        loss=loss_terms(training),
        optimizer=update_rule(training.optimizer),
        freeze=training.freeze,
        no_weight_decay=training.no_weight_decay,
        seed=seed,
        clip_norm=None if training.clip_norm is None else float(training.clip_norm),
        provider=provider,
        carry={carried.input: carried.output for carried in model.carried},
        precision=precision,
        checkpoint=checkpoint,
    )


def in_place(step: TrainingStep, provider: Provider) -> frozenset[str]:
    """The carried inputs that a step overwrites; none on CUDA, where it was never tried."""
    if provider != "cpu":
        return frozenset()
    return written_in_place(step.model, {value.input: value.output for value in step.carried})
