"""Count a model's operations and memory from its graph, without running it.

``size_of`` counts each batch size of training and inference, from the graph that is built for it.
``decoder_size`` counts what a decoder needs for each token; looking up a token in a table reads
only one row of it. No weights are drawn. ``plan.size`` defines the figures, ``graphs.counting``
counts them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import onnx

from epochcost.errors import ModelError
from epochcost.execute.job_files import without_sequences
from epochcost.execute.step import build_step, in_place_inputs
from epochcost.graphs.counting import Shapes, expert_weights, flops, static_shapes
from epochcost.graphs.peak_memory import execution_plan, item_bytes, peak_activation_bytes
from epochcost.graphs.weight_bits import BYTES_PER_WEIGHT
from epochcost.plan.binding import bind_model, carried_state
from epochcost.plan.size import PROCESS_BYTES, Footprint, ModelSize, Uncounted
from epochcost.plan.work import Phase
from epochcost.specs.model import CarriedState, Model
from epochcost.specs.study import Mode, Provider
from epochcost.train.batches import POOL_BATCHES, POOL_BYTES
from onnxstep import Carried
from onnxstep.graphs.nodes import reads
from onnxstep.graphs.parameters import Parameter, few_bits_count, parameter_count, parameters, state

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
    ModelError if the parameters of the graph cannot be read.
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


_FLOAT_BYTES = 4


@dataclass(frozen=True, slots=True)
class DecoderSize:
    """Operations and bytes that a decoder needs for a token, in fp32.

    ``length`` is the number of tokens in the prompt or the cache. ``read_bytes`` is the size of the
    weights that a step reads for one sequence. ``idle_bytes`` is the size of the experts that the
    sequence's token does not choose. ``looked_up_bytes`` is the size of lookup tables, of which a
    step reads a row. ``chosen_share`` is the share of the experts that a token chooses.
    """

    model: str
    parameters: int
    length: int
    prefill_flops_per_token: float
    decode_flops_per_token: float
    read_bytes: int
    looked_up_bytes: int
    cache_bytes_per_token: int
    idle_bytes: int = 0
    chosen_share: float = 1.0

    def decode_bytes(self, sequences: int, length: int, *, int4: bool = False) -> int:
        """Fewest bytes that a step of decoding reads: the weights once, and each sequence's cache.

        An expert's weights count if any of the sequences chooses the expert; choices are assumed to
        be random.
        """
        idle = self.idle_bytes * (1 - (1 - self.chosen_share) ** (sequences - 1))
        share = BYTES_PER_WEIGHT / _FLOAT_BYTES if int4 else 1.0
        weights = (self.read_bytes + idle) * share
        return math.ceil(weights + sequences * length * self.cache_bytes_per_token)

    def memory_bytes(self, sequences: int, length: int) -> int:
        """Estimated memory of a process in bytes.

        Weights count twice: once as they are drawn, and once in the layout that kernels read.
        """
        weights = 2 * (self.read_bytes + self.idle_bytes) + self.looked_up_bytes
        return PROCESS_BYTES + weights + sequences * length * self.cache_bytes_per_token


def decoder_size(model: Model, graph: onnx.ModelProto) -> DecoderSize:
    """Count a decoder's operations and bytes at the first prompt length of its spec.

    Raises ModelError if the model is no decoder, or if its spec and its graph do not fit each
    other.
    """
    decoder = model.decoder
    if decoder is None:
        raise ModelError(f"model {model.id}: expected a decoder, got a spec without [decoder]")
    length = decoder.generation.prompts[0]
    prefill = flops(bind_model(graph, model, 1, Phase(name="prefill", tokens=length)))
    decode = flops(bind_model(graph, model, 1, Phase(name="decode", tokens=length)))
    read, looked_up = _weights(graph)
    experts, share = _experts(graph)
    idle = round(experts * (1 - share))
    return DecoderSize(
        model=model.id,
        parameters=parameter_count(graph),
        length=length,
        prefill_flops_per_token=prefill / length,
        decode_flops_per_token=float(decode),
        read_bytes=_FLOAT_BYTES * (read - idle),
        looked_up_bytes=_FLOAT_BYTES * looked_up,
        cache_bytes_per_token=_FLOAT_BYTES * decoder.cached_numbers_per_token,
        idle_bytes=_FLOAT_BYTES * idle,
        chosen_share=share,
    )


def _weights(graph: onnx.ModelProto) -> tuple[int, int]:
    """Number of weights that a step reads completely, and number of weights in lookup tables.

    A table counts as both if the step also uses it in a matrix product.
    """
    tables = {node.input[0] for node in graph.graph.node if node.op_type == "Gather"}
    multiplied = {
        name for node in graph.graph.node if node.op_type != "Gather" for name in node.input
    }
    sizes = {tensor.name: math.prod(tensor.shape) for tensor in parameters(graph)}
    read = few_bits_count(graph)
    read += sum(size for name, size in sizes.items() if name in multiplied)
    return read, sum(size for name, size in sizes.items() if name in tables)


def _experts(graph: onnx.ModelProto) -> tuple[int, float]:
    """The number of weights in all experts, and the share of experts that a token chooses."""
    sizes = {tensor.name: tensor.shape for tensor in parameters(graph)}
    mixtures = [node for node in graph.graph.node if node.op_type == "MoE"]
    numbers = sum(math.prod(sizes[name]) for node in mixtures for name in expert_weights(node))
    if not numbers:
        return 0, 1.0
    count = sizes[expert_weights(mixtures[0])[0]][0]
    chosen = next((int(entry.i) for entry in mixtures[0].attribute if entry.name == "k"), 1)
    return numbers, chosen / count
