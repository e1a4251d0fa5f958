"""A whole training step as a single ONNX graph: forward pass, loss, backward pass and update.

Parameters and optimizer state are inputs and outputs, so a caller can keep them on the device.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from onnxstep.backward import pull_back
from onnxstep.builder import Builder, Value
from onnxstep.errors import ModelError, ModelWarning
from onnxstep.forward import Forward, close_model, names, open_model
from onnxstep.graphs.choices import match_names, unknown_name
from onnxstep.graphs.exported import separated
from onnxstep.graphs.parameters import (
    Parameter,
    materialise,
    parameters,
    state,
    untrained,
    with_parameters,
)
from onnxstep.graphs.precision import in_mixed_precision
from onnxstep.losses import LossFunction
from onnxstep.mixed_precision import TYPE_OF_PRECISION, MixedBuilder, Scale, all_finite
from onnxstep.objective import Objective, Term, keep_term_outputs, objective, terms_of
from onnxstep.optimizers import Optimizer
from onnxstep.options import StepOptions
from onnxstep.passes import lower, prepare
from onnxstep.passes.gelu import with_single_nodes
from onnxstep.passes.recompute import recompute_segments
from onnxstep.passes.training_mode import in_inference_mode, in_training_mode
from onnxstep.trained_set import TrainedSet, trained_set
from onnxstep.update import (
    Carried,
    Transition,
    accumulate,
    clip_by_global_norm,
    reset_to_zero,
    updates,
)

_DEFAULTS = StepOptions()


@dataclass(frozen=True)
class Accumulation:
    """Graph that adds a micro-batch's gradients to running sums; it runs for all but the last.

    The graph has the inputs of the step, except learning rate and optimizer state. It updates
    running statistics, but not the loss scale. ``carried`` are the sums and running statistics.
    """

    model: onnx.ModelProto
    loss: str
    carried: tuple[Carried, ...]


@dataclass(frozen=True)
class TrainingStep:
    """The graph of a training step, with the names of its inputs and outputs.

    ``inputs`` are data. ``frozen`` are parameters and running statistics that stay unchanged.
    ``targets`` has one name per loss term, or None for a loss term without target.
    ``learning_rate`` is a float32 scalar. ``accumulation`` runs instead of ``model`` for all
    micro-batches but the last.
    """

    model: onnx.ModelProto
    inputs: tuple[str, ...]
    frozen: tuple[str, ...]
    targets: tuple[str | None, ...]
    learning_rate: str
    loss: str
    carried: tuple[Carried, ...]
    trained_set: TrainedSet
    accumulation: Accumulation | None = None

    @property
    def target(self) -> str | None:
        """Name of the target input of the first loss term."""
        return self.targets[0]

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the trained parameters."""
        return tuple(c.input for c in self.carried if c.role == "parameter")

    @property
    def state(self) -> tuple[str, ...]:
        """Names of the other carried values, such as running statistics and optimizer states."""
        return tuple(c.input for c in self.carried if c.role == "state")


@dataclass(frozen=True)
class _TensorRoles:
    """Float tensors of a model by their role in a training step.

    ``declared`` are all parameters. ``untrained_reasons`` has a reason for each constant and
    buffer. ``frozen`` names tensors of any role that ``freeze`` and ``wrt`` keep unchanged.
    """

    declared: tuple[Parameter, ...]
    untrained_reasons: Mapping[str, str]
    running_statistics: tuple[str, ...]
    frozen: frozenset[str]
    undecayed: frozenset[str]

    @property
    def parameters(self) -> tuple[str, ...]:
        return tuple(parameter.name for parameter in self.declared)

    @property
    def float32_masters(self) -> frozenset[str]:
        return frozenset([*self.parameters, *self.running_statistics])

    @property
    def trained(self) -> list[str]:
        return [name for name in self.parameters if name not in self.frozen]


def _tensors(
    model: onnx.ModelProto,
    freeze: Collection[str],
    wrt: Collection[str] = (),
    no_weight_decay: Collection[str] = (),
) -> _TensorRoles:
    declared, reasons = parameters(model), untrained(model)
    trainable = [parameter.name for parameter in declared]
    statistics = tuple(statistic.name for statistic in state(model))
    excluded = set(trainable) - match_names("wrt", wrt, trainable) if wrt else set()
    return _TensorRoles(
        declared,
        reasons,
        statistics,
        frozen=match_names("freeze", freeze, [*trainable, *statistics, *reasons]) | excluded,
        undecayed=match_names("no_weight_decay", no_weight_decay, trainable),
    )


@dataclass(frozen=True)
class _DifferentiatedModel:
    """A forward pass, its loss, and the gradients by parameter, divided by the loss ``scale``."""

    forward: Forward
    objective: Objective
    loss: Value
    gradients: Mapping[str, Value]
    scale: Scale | None

    @property
    def unchanged_inputs(self) -> list[Value]:
        moving = {*self.gradients, *(move.before.name for move in self.forward.moves)}
        return [value for value in self.forward.inputs if value.name not in moving]


def training_step(model: onnx.ModelProto, options: StepOptions = _DEFAULTS) -> TrainingStep:
    """Build a model's training step; ``first_values`` returns the tensors for its first run.

    Parameters without influence on the loss are not trained. Warns with ModelWarning if it is
    unclear which tensors are weights, or if an exporter merged equal weights or computed new
    tensors from weights. Raises ModelError for unknown names, dimensions without a size, operators
    without a gradient, or nothing to train.
    """
    rule, model = options.update_rule, with_parameters("wrt", separated(model), options.wrt)
    tensors = _tensors(model, options.freeze, options.wrt, options.no_weight_decay)
    forward = _opened(model, tensors, options)
    op, scaling = forward.op, options.scaling
    scale = Scale(op, scaling) if scaling else None
    built = objective(forward, options.terms)
    forward_nodes = len(op.nodes)
    pulled = _differentiate_loss(forward, built, tensors.trained, options.micro_batches, scale)
    if options.rematerialise == "sqrt":
        recompute_segments(op, forward_nodes)
    sums = accumulate(op, pulled.gradients) if options.micro_batches > 1 else {}
    rate = op.input("learning_rate", (), onnx.TensorProto.FLOAT)
    moves = _step_transitions(pulled, sums, rule, rate, tensors.undecayed, options.clip_norm)
    declared, reasons = tensors.declared, tensors.untrained_reasons
    account = trained_set(model, declared, reasons, pulled.gradients, tensors.frozen)
    for doubt in account.doubts:
        warnings.warn(doubt, ModelWarning, stacklevel=2)
    unchanged = [value.name for value in pulled.unchanged_inputs]
    return TrainingStep(
        model=_closed(pulled, [rate], moves, "training_step"),
        inputs=tuple(name for name in unchanged if name not in tensors.float32_masters),
        frozen=tuple(name for name in unchanged if name in tensors.float32_masters),
        targets=tuple(None if target is None else target.name for target in built.targets),
        learning_rate=rate.name,
        loss=pulled.loss.name,
        carried=tuple(move.carried for move in moves),
        trained_set=account,
        accumulation=_accumulation(pulled, sums) if sums else None,
    )


def _opened(model: onnx.ModelProto, tensors: _TensorRoles, options: StepOptions) -> Forward:
    half = TYPE_OF_PRECISION.get(options.precision)
    masters, builder = tensors.float32_masters, MixedBuilder if half else Builder
    rounded = partial(in_mixed_precision, elem_type=half, masters=masters) if half else None
    ready = prepare(
        keep_term_outputs(model, options.terms, options.carry.values()),
        mode=partial(in_training_mode, seed=options.seed),
        dimensions=options.dimensions,
        varying=tensors.parameters,
        fused=with_single_nodes if options.provider == "cuda" else None,
        rounded=rounded,
    )
    blocked = options.blocked_convolutions
    opened = open_model(ready, options.provider, builder, blocked_convolutions=blocked)
    for name in tensors.trained:  # inputs of the step, which change
        opened.op.forget_constant(name)
    lowered = lower(opened, tensors.running_statistics, tensors.frozen, options.resumable)
    return replace(lowered, moves=(*lowered.moves, *_transitions_of_carry(lowered, options.carry)))


def first_values(
    step: TrainingStep, model: onnx.ModelProto, seed: int = 0
) -> dict[str, NDArray[Any]]:
    """First value of each carried and frozen tensor of ``step``, by input name.

    ``model`` is the source of ``step``; ``seed`` draws parameters that ``model`` does not store.
    """
    # ``wrt`` may have made a constant a parameter.
    weights = materialise(with_parameters("wrt", separated(model), step.parameters), seed)
    values = {name: weights[name] for name in step.frozen}
    for carried in step.carried:
        dtype = onnx.helper.tensor_dtype_to_np_dtype(carried.elem_type)
        fill = np.full(carried.shape, carried.fill, dtype)
        values[carried.input] = weights.get(carried.input, fill)
    return values


def evaluation_graph(
    model: onnx.ModelProto,
    *,
    loss: str | LossFunction | Sequence[Term] = "softmax_cross_entropy",
    output: str | None = None,
    dimensions: Mapping[str, int] | None = None,
    batch_statistics: bool = False,
    freeze: Collection[str] = (),
    wrt: Collection[str] = (),
) -> onnx.ModelProto:
    """Build the model in inference mode with its loss, for held-out batches.

    Inputs are the model's inputs, the targets, parameters, running statistics and tensors in
    ``wrt``. Outputs are the model's outputs and ``loss``. With ``batch_statistics``,
    BatchNormalization uses the batch's statistics unless its running statistics are frozen.
    `StepOptions` describes the other arguments. Raises ModelError for unknown names, dimensions
    without a size, and a loss that does not fit.
    """
    model = with_parameters("wrt", separated(model), wrt)
    weights = [entry.name for entry in (*parameters(model), *state(model))]
    ready = prepare(model, mode=in_inference_mode, dimensions=dimensions, varying=weights)
    forward = open_model(ready)
    # Running statistics are useful only after some hundred steps.
    if batch_statistics:
        tensors = _tensors(model, freeze)
        forward = lower(forward, tensors.running_statistics, tensors.frozen)
    built = objective(forward, terms_of(loss, output))
    outputs = dict.fromkeys([*forward.outputs, forward.op.rename(built.value, "loss")])
    stored = [forward.value(name) for name in weights if name not in names(forward.inputs)]
    inputs = [*forward.inputs, *built.target_inputs, *stored]
    return close_model(forward, inputs, list(outputs), "evaluation")


def _differentiate_loss(
    forward: Forward,
    built: Objective,
    trained: Sequence[str],
    micro_batches: int,
    scale: Scale | None,
) -> _DifferentiatedModel:
    """Differentiate loss / ``micro_batches``; raises ModelError if no parameter has a gradient."""
    op, shares = forward.op, built.cotangents
    if micro_batches != 1:
        shares = {name: value * (1 / micro_batches) for name, value in shares.items()}
    cotangents = pull_back(op, forward.nodes, scale.scaled(shares) if scale else shares, trained)
    gradients = {name: cotangents[name] for name in trained if name in cotangents}
    if not gradients:
        outputs = ", ".join(map(repr, built.cotangents))
        raise ModelError(
            f"no trainable parameter affects the output {outputs} by differentiable operators "
            "(rounding, comparisons and integers have a zero derivative); name the tensors to "
            "train in wrt, freeze fewer, or use the model from before its quantization"
        )
    loss = op.rename(built.value, "loss")
    gradients = scale.unscaled(gradients) if scale else gradients
    return _DifferentiatedModel(forward, built, loss, gradients, scale)


def _step_transitions(
    pulled: _DifferentiatedModel,
    sums: Mapping[str, Transition],
    rule: Optimizer,
    rate: Value,
    undecayed: Collection[str],
    clip_norm: float | None,
) -> list[Transition]:
    """All carried values; ``sums`` has the gradient sums of several micro-batches, or is empty."""
    op, scale = pulled.forward.op, pulled.scale
    gradients = {name: total.after for name, total in sums.items()} or pulled.gradients
    finite = all_finite(op, gradients) if scale else None
    gradients = clip_by_global_norm(op, gradients, clip_norm)
    moves = list(updates(op, rule, gradients, rate, undecayed, finite))
    moves += scale.moves(finite) if scale and finite else ()
    return [*moves, *(reset_to_zero(op, total) for total in sums.values()), *pulled.forward.moves]


def _transitions_of_carry(
    forward: Forward, output_by_input: Mapping[str, str]
) -> Iterator[Transition]:
    for before, after in output_by_input.items():
        if before not in names(forward.inputs):
            raise unknown_name("carried input", before, names(forward.inputs))
        if after not in names(forward.outputs):
            raise unknown_name("carried output", after, names(forward.outputs))
        old, new = forward.value(before), forward.value(after)
        if (old.shape, old.elem_type) != (new.shape, new.elem_type):
            raise ModelError(
                f"carry {before}={after}: expected equal shapes and types, "
                f"got {list(old.shape)} and {list(new.shape)}"
            )
        yield Transition(old, new, "state")


def _closed(
    pulled: _DifferentiatedModel, extra: Sequence[Value], moves: Sequence[Transition], name: str
) -> onnx.ModelProto:
    fed = [*pulled.unchanged_inputs, *pulled.objective.target_inputs, *extra]
    inputs = [*fed, *(move.before for move in moves)]
    outputs = [pulled.loss, *(move.after for move in moves)]
    return close_model(pulled.forward, inputs, outputs, name)


def _accumulation(pulled: _DifferentiatedModel, sums: Mapping[str, Transition]) -> Accumulation:
    moves = [*sums.values(), *pulled.forward.moves]
    trained = [pulled.forward.value(name) for name in pulled.gradients]
    trained += [pulled.scale.before] if pulled.scale else []
    return Accumulation(
        model=_closed(pulled, trained, moves, "accumulation"),
        loss=pulled.loss.name,
        carried=tuple(move.carried for move in moves),
    )
