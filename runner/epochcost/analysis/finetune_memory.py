"""Memory of training a decoder on one device, counted part by part from the decoder's form.

Weights, adapters, gradients, optimizer and activations are counted in bytes; each part says how.
Sharding (ZeRO stage 3, FSDP) divides all that belongs to weights over the devices; without it each
device holds all of it. Activations as Korthikanti et al. 2022 (arXiv 2205.05198) count them, for
gated feed-forward layers and fused attention, which stores no scores; weights of 4 bits as Dettmers
et al. 2023 (arXiv 2305.14314, section 3): a scale for each 64 of them, quantised once more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product

from epochcost.predict.decoders.rows import Precision
from epochcost.predict.decoders.training_rows import Method
from epochcost.specs.decoder import Decoder

DEFAULT_RANK = 16
_HALF, _SINGLE = 2, 4
# A float8 copy of the products' weights beside those in bf16.
_EIGHTH = 1
# A weight of 4 bits, a scale of 8 bits for 64 weights, and one of 32 bits for 256 scales.
_QUANTISED = (4 + 8 / 64 + 32 / (64 * 256)) / 8
# AdamW: the weight in fp32 and two moments.
_STATES = 3 * _SINGLE
# Of embeddings and head: models of more parameters rarely share them.
_LARGE_PARAMETERS = 5e9
# What the CUDA context, its libraries and the allocator's gaps take.
_CONTEXT_BYTES, _FRAGMENTATION = 0.75 * 2**30, 0.05


@dataclass(frozen=True, slots=True)
class TrainingSetting:
    """The way a decoder is trained: what a device holds and how many tokens it sees at once.

    ``sequences`` of ``length`` tokens are in work on a device. ``sharded`` over ``devices``.
    """

    method: Method
    length: int
    sequences: int
    checkpointing: bool
    sharded: bool
    devices: int
    rank: int = DEFAULT_RANK
    precision: Precision = "bf16"

    @property
    def tokens(self) -> int:
        """Tokens that a device has in work."""
        return self.length * self.sequences

    @property
    def adapters(self) -> bool:
        """Whether adapters are trained and the model's own weights are not."""
        return self.method in {"lora", "qlora"}


@dataclass(frozen=True, slots=True)
class MemoryPart:
    """Bytes of one part on a device, and how they are counted."""

    name: str
    bytes: float
    how: str


@dataclass(frozen=True)
class Shape:
    """Counts of a decoder's parameters by place, from its form.

    Matrices of a feed-forward layer (two, or three where it is gated) and whether embeddings are
    the head too follow from the number of parameters.
    """

    decoder: Decoder

    @cached_property
    def hidden(self) -> int:
        """Width of the residual stream."""
        return self.decoder.hidden or self.decoder.heads * self.decoder.head_size

    @cached_property
    def parameters(self) -> int:
        """All parameters; 0 where the form has none."""
        return self.decoder.parameters or 0

    @cached_property
    def key_width(self) -> int:
        """Numbers of the keys of a token in a layer."""
        return self.decoder.key_value_heads * self.decoder.head_size

    @cached_property
    def query_width(self) -> int:
        """Numbers of the queries of a token in a layer."""
        return self.decoder.heads * self.decoder.head_size

    @cached_property
    def attention(self) -> int:
        """Parameters of the attention of a layer."""
        return self.hidden * (2 * self.query_width + 2 * self.key_width)

    @cached_property
    def _counts(self) -> tuple[int, int]:
        """Tables of embeddings, and matrices of a feed-forward layer."""
        decoder, table = self.decoder, self.hidden * self.decoder.vocabulary
        if decoder.intermediate is None:
            return (2 if self.parameters > _LARGE_PARAMETERS else 1), 3
        matrix = self.hidden * decoder.intermediate * (decoder.experts or 1)

        def missed(counts: tuple[int, int]) -> float:
            layer = self.attention + counts[1] * matrix
            return abs(self.parameters - counts[0] * table - decoder.layers * layer)

        return min(product((1, 2), (2, 3)), key=missed)

    @cached_property
    def embeddings(self) -> int:
        """Parameters of embeddings and head."""
        return self._counts[0] * self.hidden * self.decoder.vocabulary

    @cached_property
    def layer(self) -> float:
        """Parameters of a layer."""
        return (self.parameters - self.embeddings) / self.decoder.layers

    @cached_property
    def active_width(self) -> float:
        """Numbers between the matrices of a token's feed-forward layers: of all its experts."""
        decoder, matrices = self.decoder, self._counts[1]
        active = (decoder.active_parameters or self.parameters) - self.embeddings
        return max(active / decoder.layers - self.attention, 0) / (matrices * self.hidden)

    def adapters(self, rank: int) -> float:
        """Parameters of adapters of a rank on every matrix of all layers."""
        matrices = self._counts[1] * (self.decoder.experts or 1)
        forward = (self.layer - self.attention) / self.hidden + matrices * self.hidden
        attention = 4 * self.hidden + 2 * self.query_width + 2 * self.key_width
        return rank * self.decoder.layers * (attention + forward)


def memory_parts(decoder: Decoder, setting: TrainingSetting) -> Iterator[MemoryPart]:
    """The memory of a device, part by part."""
    shape = Shape(decoder)
    yield from _state_parts(shape, setting)
    yield from _work_parts(shape, setting)


def needed_bytes(decoder: Decoder, setting: TrainingSetting) -> float:
    """The memory of a device in all, with what its context and gaps take."""
    counted = sum(part.bytes for part in memory_parts(decoder, setting))
    return counted * (1 + _FRAGMENTATION) + _CONTEXT_BYTES


def _state_parts(shape: Shape, setting: TrainingSetting) -> Iterator[MemoryPart]:
    """Weights, adapters, gradients and the optimizer's states."""
    shards = setting.devices if setting.sharded else 1
    over = f", over {shards} devices" if shards > 1 else ""
    weights, how = _weights(shape, setting)
    yield MemoryPart("weights", weights / shards, how + over)
    trained = shape.adapters(setting.rank) if setting.adapters else float(shape.parameters)
    if setting.adapters:
        matrices = f"rank {setting.rank} on every matrix of all layers"
        yield MemoryPart("adapters", _HALF * trained / shards, f"{matrices}, 2 bytes each{over}")
    yield MemoryPart("gradients", _HALF * trained / shards, f"2 bytes a trained weight{over}")
    states = f"AdamW: weight and two moments in fp32, 12 bytes a trained weight{over}"
    yield MemoryPart("optimizer", _STATES * trained / shards, states)
    if shards > 1:
        gathered = 2 * weights / shape.decoder.layers
        yield MemoryPart("gathered layers", gathered, "two layers at a time, from all devices")


def _weights(shape: Shape, setting: TrainingSetting) -> tuple[float, str]:
    """Bytes of the weights on all devices together."""
    products = shape.parameters - shape.embeddings
    if setting.method == "qlora":
        how = "4 bits and scales, 0.516 bytes a weight; embeddings and head 2 bytes"
        return _QUANTISED * products + _HALF * shape.embeddings, how
    if setting.precision == "fp8":
        copies = _HALF * shape.parameters + _EIGHTH * products
        return copies, "bf16, 2 bytes a weight, and a copy in fp8 for the products"
    return float(_HALF * shape.parameters), "bf16, 2 bytes a weight"


def _work_parts(shape: Shape, setting: TrainingSetting) -> Iterator[MemoryPart]:
    """Activations that the backward pass needs, and the scores of tokens."""
    layers, tokens = shape.decoder.layers, setting.tokens
    layer = _layer_bytes(shape, setting)
    if setting.checkpointing:
        activations = tokens * (layers * _HALF * shape.hidden + layer)
        how = f"checkpointing: the input of {layers} layers, and all of one"
    else:
        activations, how = (
            tokens * layers * layer,
            f"{layer / 1e3:.0f} kB a token in {layers} layers",
        )
    yield MemoryPart("activations", activations, f"{how}, {tokens:,} tokens")
    scores = tokens * shape.decoder.vocabulary * (_HALF + 2 * _SINGLE)
    how = f"{shape.decoder.vocabulary:,} scores a token in bf16, in fp32 and their gradients"
    yield MemoryPart("logits", scores, how)


def _layer_bytes(shape: Shape, setting: TrainingSetting) -> float:
    """Bytes that one layer keeps of a token: inputs of products, norms and activations.

    Norms work in fp32 and keep their input; a gated layer keeps both branches, the activated one
    and the product of them. 4-bit and adapted matrices keep their input as others do.
    """
    norms = 2 * shape.hidden * (_HALF + _HALF + _SINGLE)
    attention = _HALF * (2 * shape.query_width + 2 * shape.key_width + shape.query_width)
    forward = _HALF * 4 * shape.active_width
    adapters = _HALF * setting.rank * 7 if setting.adapters else 0
    return math.fsum((norms, attention, forward, adapters))
