"""Count the bytes that training a decoder takes on a device, from the decoder's dimensions.

Activations, for gated feed-forward layers and fused attention: Korthikanti et al. 2022 (arXiv
2205.05198). Weights of 4 bits: Dettmers et al. 2023 (arXiv 2305.14314, section 3).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from epochcost.predict.decoders.forms import DecoderForm
from epochcost.predict.decoders.training_rows import TrainingQuestion
from epochcost.specs.decoder import Decoder
from epochcost.units import share

DEFAULT_RANK = 16
_HALF, _SINGLE = 2, 4
# Bytes of the float8 copy of the products' weights; the originals stay in bf16.
_EIGHTH = 1
# A weight of 4 bits, a scale of 8 bits for 64 weights, and one of 32 bits for 256 scales.
_QUANTISED = (4 + 8 / 64 + 32 / (64 * 256)) / 8
# AdamW: the weight in fp32 and two moments.
_STATES = 3 * _SINGLE
# Width of a feed-forward layer in widths of the residual stream, if the spec does not state it.
_USUAL_WIDTHS = 4
# The CUDA context with its libraries, and the share that the allocator's gaps add.
_CONTEXT_BYTES, _FRAGMENTATION = 0.75 * 2**30, 0.05


@dataclass(frozen=True, slots=True)
class MemoryPart:
    """Bytes that a part of a training takes on a device; ``how`` says how they are counted."""

    name: str
    bytes: float
    how: str


@dataclass(frozen=True, slots=True)
class Counts:
    """Numbers of a decoder's parameters and activations, from which its memory follows.

    ``embeddings`` counts the parameters of the embeddings and the head, ``adapters`` those of
    low-rank adapters of rank 1 at all matrices of the layers. ``attention_width`` is the number of
    values per token that one layer's attention stores for the backward pass. ``active_width`` is
    the total feed-forward width of the experts that process a token.
    """

    embeddings: int
    adapters: float
    attention_width: int
    active_width: float


def counts_of(decoder: Decoder, form: DecoderForm) -> Counts:
    """Count parameters and activations of a decoder from its dimensions.

    Embeddings and head use one table or two, a feed-forward layer two matrices or, if gated, three.
    The case that best fits ``form.parameters`` is used.
    """
    queries, keys = (
        heads * decoder.head_size for heads in (decoder.heads, decoder.key_value_heads)
    )
    hidden, experts = form.hidden, form.experts or 1
    attention, table = hidden * (2 * queries + 2 * keys), hidden * form.vocabulary
    matrix = hidden * (decoder.intermediate or _USUAL_WIDTHS * hidden) * experts

    def missed(numbers: tuple[int, int]) -> float:
        layers = form.layers * (attention + numbers[1] * matrix)
        return abs(form.parameters - numbers[0] * table - layers)

    tables, matrices = min(product((1, 2), (2, 3)), key=missed)
    every, active = (
        max((parameters - tables * table) / form.layers - attention, 0) / hidden
        for parameters in (form.parameters, form.active_parameters)
    )
    sides = 4 * hidden + 2 * queries + 2 * keys + matrices * experts * hidden
    adapters = form.layers * (sides + every)
    return Counts(tables * table, adapters, 3 * queries + 2 * keys, active / matrices)


def needed_bytes(counts: Counts, setting: TrainingQuestion, rank: int) -> float:
    """Bytes of a training on a device: weights, optimizer, activations and all other parts."""
    return sum(part.bytes for part in memory_parts(counts, setting, rank))


def memory_parts(counts: Counts, setting: TrainingQuestion, rank: int) -> Iterator[MemoryPart]:
    """Yield the parts of a device's memory; ``rank`` is the rank of the adapters."""
    parts = [
        *_weight_and_optimizer_parts(counts, setting, rank),
        *_activation_and_logit_parts(counts, setting, rank),
    ]
    yield from parts
    lost = _CONTEXT_BYTES + _FRAGMENTATION * sum(part.bytes for part in parts)
    how = f"{_CONTEXT_BYTES / 2**30} GiB plus {share(_FRAGMENTATION)} of all other parts"
    yield MemoryPart("CUDA's context, and gaps between allocations", lost, how)


def _weight_and_optimizer_parts(
    counts: Counts, setting: TrainingQuestion, adapter_rank: int
) -> Iterator[MemoryPart]:
    shards = setting.count if setting.sharded else 1
    over = f", over {shards} devices" if shards > 1 else ""
    weights, how = _weight_bytes(counts, setting)
    yield MemoryPart("weights", weights / shards, how + over)
    trained = adapter_rank * counts.adapters if setting.frozen else float(setting.form.parameters)
    if setting.frozen:
        matrices = f"rank {adapter_rank} on every matrix of all layers"
        yield MemoryPart("adapters", _HALF * trained / shards, f"{matrices}, 2 bytes each{over}")
    yield MemoryPart("gradients", _HALF * trained / shards, f"2 bytes a trained weight{over}")
    states = f"AdamW: weight and two moments in fp32, 12 bytes a trained weight{over}"
    yield MemoryPart("optimizer", _STATES * trained / shards, states)
    if shards > 1:
        form = setting.form
        gathered = 2 * weights / form.layers * setting.gathered_parameters / form.parameters
        without = "; experts stay on their devices" if form.expert_parameters else ""
        how = f"two layers at a time, from all devices{without}"
        yield MemoryPart("gathered layers", gathered, how)


def _weight_bytes(counts: Counts, setting: TrainingQuestion) -> tuple[float, str]:
    """The bytes of all weights, before any split over devices, and a phrase that explains them."""
    parameters = setting.form.parameters
    products = parameters - counts.embeddings
    if setting.method == "qlora":
        how = "4 bits and scales, 0.516 bytes a weight; embeddings and head 2 bytes"
        return _QUANTISED * products + _HALF * counts.embeddings, how
    if setting.precision == "fp8":
        copies = _HALF * parameters + _EIGHTH * products
        return copies, "bf16, 2 bytes a weight, and a copy in fp8 for the products"
    return float(_HALF * parameters), "2 bytes a weight"


def _activation_and_logit_parts(
    counts: Counts, setting: TrainingQuestion, adapter_rank: int
) -> Iterator[MemoryPart]:
    """Yield the memory of activations and of logits.

    A layer stores the inputs of its matrix products, norms (in fp32) and activation functions.
    """
    form, tokens = setting.form, round(setting.tokens)
    norms = 2 * form.hidden * (_HALF + _HALF + _SINGLE)
    adapters = _HALF * adapter_rank * 7 if setting.frozen else 0
    # A gated layer stores its two branches, the activation's result and the branches' product.
    # Inputs of frozen matrices are stored, too.
    layer = norms + _HALF * (counts.attention_width + 4 * counts.active_width) + adapters
    stored, how = form.layers * layer, f"{layer / 1e3:.0f} kB a token in {form.layers} layers"
    if setting.checkpointing:
        stored = form.layers * _HALF * form.hidden + layer
        how = f"checkpointing: the inputs of {form.layers} layers, and all of one"
    yield MemoryPart("activations", tokens * stored, f"{how}, {tokens:,} tokens")
    scores = tokens * form.vocabulary * (_HALF + 2 * _SINGLE)
    how = f"{form.vocabulary:,} scores a token in 16 and 32 bits, and gradients in fp32"
    yield MemoryPart("logits", scores, how)
