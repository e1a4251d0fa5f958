"""Fit a graph to a trial: give sizes to the graph's dimensions, and find its carried state.

A decoder's graph must have the names that onnxruntime-genai's model builder writes, and the sizes
in ``[decoder]``. No weights are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import onnx

from epochcost.errors import ModelError
from epochcost.graphs.weight_bits import stored_bits
from epochcost.plan.work import STEPS, Phase, Work
from epochcost.specs.decoder import MASK, POSITIONS, SCORES, TOKENS, Decoder
from epochcost.specs.model import CarriedState, Model
from epochcost.specs.wording import KeyPath, format_key_path
from onnxstep.graphs.binding import bind_dimensions, symbolic_dimensions
from onnxstep.graphs.choices import unknown_name
from onnxstep.graphs.exported import separated
from onnxstep.graphs.initial import listed_parameters, listed_state
from onnxstep.graphs.nodes import node_attributes
from onnxstep.graphs.parameters import data_inputs

_BATCH = "batch"
_REMEDY = "see docs/how-to/add-a-decoder.md on how to export it"

# Index of the input of GroupQueryAttention that is the table of cosines.
_COSINES = 7
_CACHE_AXES = 4
_LEFT_OUT = [""] * (_COSINES + 1)
# Operators whose second input indexes the first, with the axis.
_INDEXED = {"Gather": 0, "SoftmaxCrossEntropyLoss": 1, "NegativeLogLikelihoodLoss": 1}
# Keys whose value in a spec may be less than the graph's.
_AT_MOST = ("vocabulary", "context")


def bind_model(
    graph: onnx.ModelProto, model: Model, batch_size: int, work: Work = STEPS
) -> onnx.ModelProto:
    """The model's graph with fixed shapes for ``batch_size``.

    For a phase of a decoder, all sizes follow from the phase and the spec's ``[decoder]``.
    Otherwise, the spec's ``[dimensions]`` has the sizes of symbolic dimensions; one dimension
    without a size there is the batch. Raises ModelError if several lack a size, if the graph lacks
    a dimension of the spec, or if a size contradicts the graph.
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
    """The model's carried state: inputs whose value is an output of the previous step.

    Raises ModelError for names that the graph lacks, or unequal shapes or types.
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
    return model.states


class Misfit(NamedTuple):
    """A key of the spec that contradicts the graph, and a message."""

    key: KeyPath
    message: str

    def __str__(self) -> str:
        return f"{format_key_path(self.key)}: {self.message}"


def misfits(graph: onnx.ModelProto, decoder: Decoder) -> Iterator[Misfit]:
    """Contradictions of a graph and the spec's ``[decoder]``; the first may cause later ones."""
    inputs = _fed(graph)
    outputs = {value.name: value for value in graph.graph.output}
    yield from _of_layers(inputs, decoder)
    yield from _of_names(inputs, outputs, decoder)
    yield from _of_types(graph, inputs, decoder)
    yield from _of_sizes(graph, {**inputs, **outputs}, decoder)


def file_misfits(path: Path, model: Model) -> Iterator[Misfit]:
    """Yield contradictions of an ONNX file and its model's spec.

    Raises ModelError if the file's metadata has a malformed list of the graph's parameters.
    """
    graph = onnx.load_model(path, load_external_data=False)
    yield from misfits(graph, model.decoder) if model.decoder else graph_misfits(graph, model)


def graph_misfits(graph: onnx.ModelProto, model: Model) -> Iterator[Misfit]:
    """Yield contradictions of a graph and its spec; only sizes that the graph states count."""
    if not graph.graph.output:
        yield Misfit(("graph",), "should have an output, has none")
    yield from _of_fed_inputs(graph, model)
    yield from input_misfits(graph, model)
    dimensions = symbolic_dimensions(graph)
    expected = f"should name the graph's dimensions {', '.join(dimensions) or '(none)'}"
    for name in model.dimensions:
        if name not in dimensions:
            yield Misfit(("dimensions", name), f"{expected}, got {name!r}")
    scores = {value.name: [0, *_shape(value)][-1] for value in graph.graph.output}
    for term in model.training.terms if model.training else ():
        most, classes = scores.get(term.output, 0), (term.target and term.target.classes) or 0
        if term.output not in scores:
            message = f"should name an output, {', '.join(scores) or '(none)'}, got {term.output!r}"
            yield Misfit(("training",), message)
        elif 0 < most < classes and term.loss != "sigmoid_cross_entropy":
            message = f"should have at most {most:,} classes for {term.output!r}, got {classes:,}"
            yield Misfit(("training",), message)


def input_misfits(graph: onnx.ModelProto, model: Model) -> Iterator[Misfit]:
    """Yield contradictions of a graph's inputs for data and the spec's ``[[inputs]]``.

    They are missing or unknown names, and values that exceed the axis that they index.
    """
    states = {state.input for state in model.states}
    inputs = {*_fed(graph)} - states
    declared = model.fed_to(inputs)
    expected = f"should name the graph's inputs {', '.join(sorted(inputs)) or '(none)'}"
    for place, each in enumerate(declared):
        if each.name not in inputs:
            carried = ", which [[carried]] starts at zero" if each.name in states else ""
            message = f"{expected}, got {each.name!r}{carried}"
            yield Misfit(("inputs", place, "name"), message)
    for name in sorted(inputs - {each.name for each in declared}):
        yield Misfit(("inputs",), f"{expected}, has no {name!r}")
    yield from _of_indices(graph, {each.name: each.range for each in declared})


def _of_indices(
    graph: onnx.ModelProto, ranges: dict[str, tuple[Decimal, Decimal]]
) -> Iterator[Misfit]:
    shapes = _known_shapes(graph)
    shapes |= {each.name: _shape(each) for each in (*graph.graph.value_info, *graph.graph.output)}
    for node in graph.graph.node:
        attributes, (table, indices) = node_attributes(node), [*node.input, *_LEFT_OUT][:2]
        if node.op_type == "Cast" and table in ranges:
            ranges[node.output[0]] = ranges[table]
        if node.op_type in _INDEXED and indices in ranges:
            low, high = ranges[indices]
            axis, shape = attributes.get("axis", _INDEXED[node.op_type]), shapes.get(table, ())
            # Shape inference may not know the length, which then is 0, or any length at all.
            length = shape[axis] if -len(shape) <= axis < len(shape) else 0
            # ONNX counts negative indices from the end, but PyTorch rejects them.
            ignored = attributes.get("ignore_index") == low == high - 1
            if length and not ignored and (low < 0 or high > length):
                message = (
                    f"should be from 0 to below {length:,} in {indices!r}, by which "
                    f"{node.op_type} reads {table!r}, got {low:,} to below {high:,}"
                )
                yield Misfit(("inputs",), message)


def _of_fed_inputs(graph: onnx.ModelProto, model: Model) -> Iterator[Misfit]:
    for name, value in _fed(graph).items():
        if value.type.tensor_type.elem_type == onnx.TensorProto.STRING:
            message = f"should be numbers or truth values, got the input {name!r} of type STRING"
            yield Misfit(("inputs",), message)
    for name, fixed in fixed_batch_sizes(graph, model).items():
        for mode, table in (("training", model.training), ("inference", model.inference)):
            for size in table.batch_sizes if table else ():
                if size != fixed:
                    message = f"should be {fixed}, as the graph's input {name!r} has it, got {size}"
                    yield Misfit((mode, "batch_sizes"), message)


def fixed_batch_sizes(graph: onnx.ModelProto, model: Model) -> dict[str, int]:
    """Fixed sizes of the inputs' first dimension, the batch, by input; without carried state."""
    states = {state.input for state in model.states}
    first = {name: dim for name, value in _fed(graph).items() for dim in _dims(value)[:1]}
    sizes = {
        name: dim.dim_value or model.dimensions.get(dim.dim_param or f"{name}[0]", 0)
        for name, dim in first.items()
        if name not in states
    }
    return {name: size for name, size in sizes.items() if size}


def phase_sizes(
    graph: onnx.ModelProto, decoder: Decoder, batch_size: int, phase: Phase
) -> dict[str, int]:
    """Sizes of a decoder graph's symbolic dimensions for a batch size and a phase, by name.

    The cache is exactly as long as the sequence at the end of the phase, since a longer cache makes
    ONNX Runtime's decoding slower (microsoft/onnxruntime#29686).
    """
    cache = (batch_size, decoder.key_value_heads, phase.length, decoder.head_size)
    new, cached = (batch_size, phase.new_tokens), (batch_size, phase.length)
    fed = {TOKENS: new, POSITIONS: new, MASK: cached} | {past: cache for past, _ in decoder.cache}
    return {
        dim.dim_param or f"{name}[{axis}]": size
        for name, value in _fed(graph).items()
        for axis, (dim, size) in enumerate(zip(_dims(value), fed.get(name, ()), strict=False))
        if not dim.HasField("dim_value")
    }


def _fed(graph: onnx.ModelProto) -> Mapping[str, onnx.ValueInfoProto]:
    parameters = {tensor.name for tensor in graph.graph.initializer}
    parameters.update(listed_parameters(graph) or (), listed_state(graph))
    return {value.name: value for value in graph.graph.input if value.name not in parameters}


def _shape(value: onnx.ValueInfoProto) -> tuple[int, ...]:
    return tuple(dim.dim_value for dim in _dims(value))


def _dims(value: onnx.ValueInfoProto) -> list[onnx.TensorShapeProto.Dimension]:
    return list(value.type.tensor_type.shape.dim)


_Values = Mapping[str, onnx.ValueInfoProto]


def _of_layers(inputs: _Values, decoder: Decoder) -> Iterator[Misfit]:
    key = "past_key_values.{}.key".format
    layers = next(count for count in range(len(inputs) + 1) if key(count) not in inputs)
    if not layers:
        names = ", ".join(inputs)
        yield Misfit(("graph",), f"should have an input {key(0)!r}, got {names:.200}: {_REMEDY}")
    elif layers != decoder.layers:
        has = (
            f"no input {key(layers)!r}"
            if layers < decoder.layers
            else f"an input {key(decoder.layers)!r} too"
        )
        message = f"should be {layers}, got {decoder.layers}: the graph has {has}"
        yield Misfit(("decoder", "layers"), message)


def _of_names(inputs: _Values, outputs: _Values, decoder: Decoder) -> Iterator[Misfit]:
    for kind, values, names in (
        ("input", inputs, (TOKENS, MASK, *(past for past, _ in decoder.cache))),
        ("output", outputs, (SCORES, *(now for _, now in decoder.cache))),
    ):
        for name in (name for name in names if name not in values):
            yield Misfit(("graph",), f"should have an {kind} {name!r}, has none: {_REMEDY}")
    expected = {TOKENS, MASK, POSITIONS, *(past for past, _ in decoder.cache)}
    for name in (name for name in inputs if name not in expected):
        listed = f"{TOKENS}, {MASK}, {POSITIONS} and the cache"
        yield Misfit(("graph",), f"should have no inputs but {listed}, got {name!r}: {_REMEDY}")


def _of_types(graph: onnx.ModelProto, inputs: _Values, decoder: Decoder) -> Iterator[Misfit]:
    build = "build it with -p fp32 or, with weights of 4 bits, -p int4, and -e cpu"
    for past, _ in decoder.cache:
        kind = inputs[past].type.tensor_type.elem_type if past in inputs else onnx.TensorProto.FLOAT
        if kind != onnx.TensorProto.FLOAT:
            got = onnx.TensorProto.DataType.Name(kind)
            yield Misfit(("graph",), f"should compute in fp32, got {past} in {got}: {build}")
    for bits in sorted(stored_bits(graph) - {4}):
        message = f"should have weights in fp32 or of 4 bits, got some of {bits} bits: {build}"
        yield Misfit(("graph",), message)


# A key of ``[decoder]``, the size that the graph implies for the key, and the name of the tensor or
# node that implies the size.
_ImpliedSize = tuple[str, int, str]


def _of_sizes(graph: onnx.ModelProto, values: _Values, decoder: Decoder) -> Iterator[Misfit]:
    for key, size, source in (*_cache_sizes(values, decoder), *_attention_sizes(graph)):
        got = getattr(decoder, key)
        if got != size and not (key in _AT_MOST and got < size):
            yield Misfit(("decoder", key), f"should be {size}, as {source!r} has it, got {got}")


def _cache_sizes(values: _Values, decoder: Decoder) -> Iterator[_ImpliedSize]:
    for name in (name for pair in decoder.cache for name in pair if name in values):
        dims = _dims(values[name])
        if len(dims) == _CACHE_AXES:
            sizes = (("key_value_heads", dims[1]), ("head_size", dims[3]))
            yield from ((key, dim.dim_value, name) for key, dim in sizes if dim.dim_value)
    for dim in _dims(values[SCORES])[-1:] if SCORES in values else ():
        if dim.dim_value:
            yield "vocabulary", dim.dim_value, SCORES


def _known_shapes(graph: onnx.ModelProto) -> dict[str, tuple[int, ...]]:
    return {tensor.name: tuple(tensor.dims) for tensor in graph.graph.initializer} | {
        value.name: _shape(value) for value in graph.graph.input
    }


def _attention_sizes(graph: onnx.ModelProto) -> Iterator[_ImpliedSize]:
    shapes = _known_shapes(graph)
    heads: dict[str, int] = {}
    for node in graph.graph.node:
        attributes, read = node_attributes(node), [*node.input, *_LEFT_OUT]
        if node.op_type == "GroupQueryAttention" and (count := attributes.get("num_heads")):
            heads |= dict.fromkeys(node.output[:1], count)
            yield "heads", count, node.name
            # The table of rotary angles is as long as the longest context.
            if table := shapes.get(read[_COSINES]):
                yield "context", table[0], read[_COSINES]
        elif read[0] in heads and node.op_type == "MatMulNBits" and "K" in attributes:
            yield "head_size", attributes["K"] // heads[read[0]], read[0]
        elif read[0] in heads and node.op_type == "MatMul" and shapes.get(read[1]):
            yield "head_size", shapes[read[1]][0] // heads[read[0]], read[0]
