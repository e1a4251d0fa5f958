"""Decoders: language models that generate tokens and store data of earlier tokens in a cache.

A prefill reads a prompt and fills the cache. A decoding run computes one token of each sequence.
The names of a graph's inputs and outputs are as in onnxruntime-genai's model builder.
"""

from __future__ import annotations

from typing import Literal

from pydantic import ValidationInfo, field_validator, model_validator

from epochcost.specs.base import Choices, PositiveInt, Spec, key, optional

PhaseName = Literal["prefill", "decode"]
# Precisions of weights in which `tokens` prices a decoder.
ServedPrecision = Literal["bf16", "fp8", "int8", "int4", "fp4"]
TOKENS, MASK, POSITIONS = "input_ids", "attention_mask", "position_ids"
SCORES = "logits"
_PARTS = ("key", "value")
# Keys of a decoder that need each other.
_PAIRS = (
    ("key_value_rank", "rope_size"),
    ("window", "windowed_layers"),
    ("experts", "experts_per_token"),
)
# A decoder has at most this many times the parameters that its sizes imply.
_MOST_EXTRA = 3


class Generation(Spec):
    """The lengths of prompts and caches at which a decoder's times are measured."""

    batch_sizes: Choices[PositiveInt] = key("Sequences in a batch.", [1, 4], default=(1, 4))
    prompts: Choices[PositiveInt] = key(
        "Lengths of prompts whose prefill is timed, in tokens.", default=(256, 1024)
    )
    contexts: Choices[PositiveInt] = key(
        "Lengths of the cache at which decoding is timed, in tokens.", default=(256, 1024)
    )


class Decoder(Spec):
    """Sizes of a language model that generates tokens with a cache of keys and values.

    For each token, the cache contains ``2 * layers * key_value_heads * head_size`` numbers. With
    latent attention, it contains ``layers * (key_value_rank + rope_size)`` numbers. Layers with a
    window keep only the numbers of the latest tokens.
    """

    layers: PositiveInt = key("Number of layers, each with a separate cache.", 30)
    heads: PositiveInt = key("Number of attention heads in a layer.", 9)
    key_value_heads: PositiveInt = key(
        "Number of key-value heads; each serves equally many attention heads.", 3
    )
    head_size: PositiveInt = key("Size of a head.", 64)
    key_value_rank: PositiveInt | None = optional(
        "Size of the latent vector that the cache stores instead of keys and values.", 512
    )
    rope_size: PositiveInt | None = optional("Size of the rotated key, cached as well.", 64)
    window: PositiveInt | None = optional("Latest tokens that windowed layers attend to.", 1024)
    windowed_layers: PositiveInt | None = optional("Number of layers with a window.", 25)
    vocabulary: PositiveInt = key("Number of different tokens.", 49152)
    context: PositiveInt = key("Tokens of the longest sequence, prompt and answer together.", 8192)
    hidden: PositiveInt | None = optional("Width of the residual stream.", 576)
    intermediate: PositiveInt | None = optional(
        "Width of the feed-forward layer, or of a single expert.", 1536
    )
    experts: PositiveInt | None = optional("Experts in a layer, from which a router chooses.", 128)
    experts_per_token: PositiveInt | None = optional("Experts that a token uses.", 8)
    parameters: PositiveInt | None = optional("Parameters; tied parameters count once.", 134515008)
    active_parameters: PositiveInt | None = optional(
        "Parameters that a token uses; all by default.", 12879925248, validate_default=True
    )
    published_precision: ServedPrecision = key(
        "Precision of the published weights, which prices to serve the model assume; fp4 for MXFP4 "
        "and NVFP4.",
        "fp8",
        default="bf16",
    )
    generation: Generation = Generation()

    @field_validator("key_value_heads")
    @classmethod
    def _shared_evenly(cls, shared: int, info: ValidationInfo) -> int:
        heads = info.data.get("heads")
        if heads is not None and heads % shared:
            raise ValueError(f"should divide the number of heads, {heads}")
        return shared

    @field_validator("active_parameters")
    @classmethod
    def _all_by_default(cls, active: int | None, info: ValidationInfo) -> int | None:
        parameters = info.data.get("parameters")
        if active is not None and parameters is not None and active > parameters:
            raise ValueError(f"should be at most the parameters, {parameters}")
        return parameters if active is None else active

    @model_validator(mode="after")
    def _in_pairs(self) -> Decoder:
        for first, second in _PAIRS:
            if (getattr(self, first) is None) != (getattr(self, second) is None):
                raise ValueError(f"should have both {first} and {second}, or neither")
        if (self.windowed_layers or 0) > self.layers:
            raise ValueError(f"should have windowed_layers of at most {self.layers}")
        if (self.experts_per_token or 0) > (self.experts or 0):
            raise ValueError(f"should have experts_per_token of at most {self.experts}")
        return self

    @model_validator(mode="after")
    def _counts_weights(self) -> Decoder:
        # Latent attention has products of low rank instead.
        if not self.hidden or not self.parameters or self.key_value_rank is not None:
            return self
        # A feed-forward layer has two or three matrices, and embeddings may be tied.
        dense = self.intermediate if self.intermediate and not self.experts else 0
        width = 2 * (self.heads + self.key_value_heads) * self.head_size
        least = self.hidden * (self.layers * (width + 2 * dense) + self.vocabulary)
        most = self.hidden * (
            self.layers * (width + 3 * dense) + 2 * self.vocabulary + self.context
        )
        if self.parameters < least:
            raise ValueError(
                f"should have at least {least:,} parameters by its sizes, got {self.parameters:,}"
            )
        if dense and self.parameters > _MOST_EXTRA * most:
            raise ValueError(
                f"should have about {most:,} parameters by its sizes, got {self.parameters:,}"
            )
        return self

    @field_validator("generation")
    @classmethod
    def _within_context(cls, generation: Generation, info: ValidationInfo) -> Generation:
        room = info.data.get("context")
        needed = max(*generation.prompts, *(before + 1 for before in generation.contexts))
        if room is not None and needed > room:
            raise ValueError(f"should have sequences within the context of {room}, not of {needed}")
        return generation

    @property
    def predictable(self) -> bool:
        """Whether the sizes suffice to predict times without an ONNX graph."""
        return self.hidden is not None and self.parameters is not None

    @property
    def cached_numbers_per_token(self) -> int:
        """How many numbers the cache contains for each token of a sequence."""
        if self.key_value_rank is not None and self.rope_size is not None:
            return self.layers * (self.key_value_rank + self.rope_size)
        return len(_PARTS) * self.layers * self.key_value_heads * self.head_size

    @property
    def cache(self) -> tuple[tuple[str, str], ...]:
        """Pairs of names: a cache input, and the output that is this input in the next run."""
        places = [f"{layer}.{part}" for layer in range(self.layers) for part in _PARTS]
        return tuple((f"past_key_values.{place}", f"present.{place}") for place in places)
