"""Count a model's operations and memory at each batch size from its graph, without running it.

The graph is built for each batch size. No weights are drawn. ``plan.size`` defines the figures,
``graphs.counting`` counts them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import onnx

from epochcost.errors import ModelError
from epochcost.execute.job_files import without_sequences
from epochcost.execute.step import build_step, in_place_inputs
from epochcost.graphs.counting import Shapes, flops, static_shapes
from epochcost.graphs.peak_memory import execution_plan, item_bytes, peak_activation_bytes
from epochcost.plan.binding import bind_model, carried_state
from epochcost.plan.size import Footprint, ModelSize, Uncounted
from epochcost.specs.model import CarriedState, Model
from epochcost.specs.study import Mode, Provider
from epochcost.train.batches import POOL_BATCHES, POOL_BYTES
from onnxstep import Carried
from onnxstep.graphs.choices import match_names
from onnxstep.graphs.nodes import reads
from onnxstep.graphs.parameters import Parameter, parameter_count, parameters, state

BatchSizes = Mapping[Mode, Collection[int]]


def declared_batch_sizes(model: Model) -> BatchSizes:
    """The batch sizes of a model's spec, by mode."""
    swept: dict[Mode, Collection[int]] = {}
    if model.training is not None:
        swept["training"] = model.training.batch_sizes
    if model.inference is not None:
        swept["inference"] = model.inference.batch_sizes
    return swept


def size_of(
    model: Model, graph: onnx.ModelProto, batch_sizes: BatchSizes, provider: Provider = "cpu"
) -> ModelSize:
    """Count a model's parameters, and its operations and memory at the batch sizes of each mode.

    If the graph of a mode cannot be built, the result has the reason instead of an estimate. Raises
    ModelError if the parameters of the graph cannot be read or ``freeze`` names none of them.
    """
    footprints: list[Footprint] = []
    uncounted: list[Uncounted] = []
    for mode, sizes in batch_sizes.items():
        try:
            work = _SizedModel(model, graph, mode, provider)
            footprints += list(_footprints(work, sorted(sizes)))
        except ModelError as error:
            uncounted.append(Uncounted(mode, str(error)))
    return ModelSize(
        model=model.id,
        parameters=parameter_count(graph),
        trainable_parameters=_trainable(model, graph),
        footprints=tuple(footprints),
        uncounted=tuple(uncounted),
    )


@dataclass(frozen=True)
class _SizedModel:
    model: Model
    graph: onnx.ModelProto
    mode: Mode
    provider: Provider


@dataclass(frozen=True)
class _BuiltGraph:
    """The graph that a trial runs, and the names of values that a step passes on or overwrites."""

    graph: onnx.ModelProto
    carried: frozenset[str]
    overwritten: frozenset[str] = frozenset()


def _footprints(work: _SizedModel, batch_sizes: Sequence[int]) -> Iterator[Footprint]:
    for batch in batch_sizes:
        graph = without_sequences(bind_model(work.graph, work.model, batch))
        forward = _BuiltGraph(graph, _names(carried_state(graph, work.model)))
        yield _footprint(work, batch, forward, _built_step(work, graph))


def _built_step(work: _SizedModel, graph: onnx.ModelProto) -> _BuiltGraph | None:
    """The training step of a graph with a fixed batch size; None in inference."""
    if work.mode == "inference" or work.model.training is None:
        return None
    step = build_step(graph, work.model, work.model.training, work.provider)
    return _BuiltGraph(step.model, _names(step.carried), in_place_inputs(step, work.provider))


def _names(carried: Iterable[Carried | CarriedState]) -> frozenset[str]:
    """Names of the inputs and outputs of values that a step passes to the next step."""
    return frozenset(name for value in carried for name in (value.input, value.output))


def _footprint(
    work: _SizedModel, batch: int, forward: _BuiltGraph, step: _BuiltGraph | None
) -> Footprint:
    run = step or forward
    shapes = static_shapes(run.graph)
    weights = (*parameters(work.graph), *state(work.graph))
    weight_names = {tensor.name for tensor in weights}
    inputs = {value.name for value in run.graph.graph.input}
    ends = [*inputs, *(value.name for value in run.graph.graph.output)]
    widths = item_bytes(run.graph)
    sizes = {name: math.prod(shapes[name]) * widths[name] for name in ends}
    staying = weight_names | run.carried
    exchanged = [name for name in ends if name not in staying]
    fed = sum(sizes[name] for name in exchanged if name in inputs)
    return Footprint(
        mode=work.mode,
        batch_size=batch,
        forward_flops=flops(forward.graph),
        step_flops=None if step is None else flops(run.graph, shapes),
        weight_bytes=_bytes(weights),
        fixed_bytes=_bytes(tensor for tensor in weights if tensor.name not in run.carried),
        carried_bytes=sum(sizes[name] for name in inputs if name in run.carried),
        activation_bytes=peak_activation_bytes(run.graph, shapes),
        exchanged_bytes=sum(sizes[name] for name in exchanged),
        pool_bytes=max(2 * fed, min(POOL_BYTES, POOL_BATCHES * fed)),
        in_place_bytes=sum(sizes[name] for name in run.overwritten),
        folded_bytes=_folded_bytes(run.graph, shapes),
    )


def _trainable(model: Model, graph: onnx.ModelProto) -> int:
    """Number of parameters that training changes; all if the model is not trained."""
    every = parameters(graph)
    names = [tensor.name for tensor in (*every, *state(graph))]
    frozen = match_names("freeze", model.training.freeze if model.training else (), names)
    return sum(math.prod(tensor.shape) for tensor in every if tensor.name not in frozen)


def _bytes(tensors: Iterable[Parameter]) -> int:
    return sum(
        math.prod(tensor.shape) * onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type).itemsize
        for tensor in tensors
    )


def _folded_bytes(model: onnx.ModelProto, shapes: Shapes) -> int:
    """Bytes of the values that a session computes from initializers when it is created."""
    run, widths = execution_plan(model), item_bytes(model)
    stored = {tensor.name for tensor in model.graph.initializer}
    needed = {name for node in run.nodes for name in reads(node)}
    folded = (run.constants & needed) - stored
    return sum(math.prod(shapes[name]) * widths[name] for name in folded if name in shapes)
