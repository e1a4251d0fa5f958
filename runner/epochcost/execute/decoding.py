"""Count what a decoder needs for each token: operations, bytes to read, and memory.

Looking up a token in a table reads only one row of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import onnx

from epochcost.errors import ModelError
from epochcost.graphs.counting import expert_weights, flops
from epochcost.graphs.weight_bits import BYTES_PER_WEIGHT
from epochcost.plan.binding import bind_model
from epochcost.plan.size import PROCESS_BYTES
from epochcost.plan.work import Phase
from epochcost.specs.model import Model
from onnxstep.graphs.parameters import few_bits_count, parameter_count, parameters

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
