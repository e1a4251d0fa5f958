"""Fit a graph to a trial: give sizes to its dimensions, and find its carried state."""

from __future__ import annotations

import onnx

from epochcost.errors import ModelError
from epochcost.plan.decoder_form import misfits, phase_sizes
from epochcost.plan.work import STEPS, Phase, Work
from epochcost.specs.model import CarriedState, Model
from epochcost.specs.wording import format_key_path
from onnxstep.graphs.binding import bind_dimensions, symbolic_dimensions
from onnxstep.graphs.choices import unknown_name
from onnxstep.graphs.exported import separated
from onnxstep.graphs.parameters import data_inputs

_BATCH = "batch"


def bind_model(
    graph: onnx.ModelProto, model: Model, batch_size: int, work: Work = STEPS
) -> onnx.ModelProto:
    """The model's graph with fixed shapes for a batch size; for a decoder, also for a phase.

    The sizes of other dimensions come from the spec's ``[dimensions]``. If a single dimension has
    no size there, it is the batch, whatever its name. Tensors that an exporter merged are separated
    again, see ``exported.separated``. Raises ModelError if a dimension of the graph has no size, if
    the spec sizes a dimension that the graph lacks, or if a size does not fit.
    """
    if isinstance(work, Phase) and model.decoder is not None:
        for misfit in misfits(graph, model.decoder):
            raise ModelError(f"model {model.id}: {misfit}")
        return _bound(graph, model, phase_sizes(graph, model.decoder, batch_size, work))
    names = symbolic_dimensions(graph)
    for name in model.dimensions:
        if name not in names:
            raise ModelError(
                f"model {model.id}: [dimensions]: {unknown_name('dimension', name, names)}"
            )
    unsized = [name for name in names if name not in model.dimensions]
    batch = unsized[0] if len(unsized) == 1 else _BATCH
    for name in unsized:
        if name != batch:
            key = format_key_path((name,))
            raise ModelError(
                f"model {model.id}: expected a size for the dimension {name!r} of {model.graph}, "
                f"found none: write it in the spec's table [dimensions], such as {key} = 128"
            )
    return _bound(graph, model, {**model.dimensions, **({batch: batch_size} if unsized else {})})


def _bound(graph: onnx.ModelProto, model: Model, sizes: dict[str, int]) -> onnx.ModelProto:
    try:
        return bind_dimensions(separated(graph), sizes)
    except ModelError as error:
        bound = ", ".join(f"{name} = {size}" for name, size in sizes.items()) or "its own shapes"
        raise ModelError(f"models/{model.graph} with {bound}: {error}") from None


def carried_state(graph: onnx.ModelProto, model: Model) -> tuple[CarriedState, ...]:
    """The carried state that the spec declares.

    Raises ModelError if the graph lacks its names, or if an input and its output differ in shape or
    type.
    """
    inputs = {data.name: (data.shape, data.elem_type) for data in data_inputs(graph)}
    outputs = {value.name: value.type.tensor_type for value in graph.graph.output}
    for state in model.states:
        where = f"model {model.id}: [[carried]]"
        if state.input not in inputs:
            raise ModelError(f"{where}: {unknown_name('input', state.input, inputs)}")
        if state.output not in outputs:
            raise ModelError(f"{where}: {unknown_name('output', state.output, outputs)}")
        kind = outputs[state.output]
        after = (tuple(dim.dim_value for dim in kind.shape.dim), kind.elem_type)
        if inputs[state.input] != after:
            raise ModelError(
                f"{where}: expected equal shapes and types of {state.input!r} and "
                f"{state.output!r}, got {list(inputs[state.input][0])} and {list(after[0])}"
            )
    carried = [state.output for state in model.states]
    for name in carried:
        if carried.count(name) > 1:
            raise ModelError(
                f"model {model.id}: [[carried]]: expected each output once, got {name!r} twice"
            )
    return model.states
