"""Data to learn from: a fixed random network draws inputs and says what is right.

A latent factor z ~ N(0, I) becomes the inputs through fixed random layers, with noise (``inputs``);
targets follow from z or from the inputs (``targets``). What they depend on is thus in the inputs,
and a model can learn it. The same seed gives the same data. Which batches are drawn when is left
to ``train.batches``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epochcost.train.examples import Arrays, Batch, Field, Target
from epochcost.train.inputs import Floats, constant, layer, numbers, tokens
from epochcost.train.targets import (
    MOST_DIRECTIONS,
    MOST_TOPICS,
    followed,
    from_latent,
    from_positions,
    without_ignored,
)

_LAYER_KEY, _EXAMPLES_KEY = 1, 2


@dataclass(frozen=True)
class Teacher:
    """Draws examples; the classes of one for each example are equally likely up to 64 classes."""

    fields: Sequence[Field]
    targets: Sequence[Target]
    seed: int

    def draw(self, stream: int, index: int, size: int) -> Batch:
        """``size`` examples: batch ``index`` of an endless ``stream``, the same at each call."""
        rng = np.random.default_rng([self.seed, _EXAMPLES_KEY, stream, index])
        latent = rng.standard_normal((size, self._latent), dtype=np.float32)
        inputs = {
            field.name: self._input(position, field, latent, rng)
            for position, field in enumerate(self.fields)
        }
        targets = {
            target.name: self._target(target, inputs, latent, rng) for target in self.targets
        }
        return Batch(inputs, targets)

    def _input(
        self, position: int, field: Field, latent: Floats, rng: np.random.Generator
    ) -> NDArray[Any]:
        if field.kind == "constant":
            return constant(field, len(latent))
        if field.kind == "tokens":
            return tokens(field, latent, rng)
        return numbers(field, latent @ self._layers[position], rng)

    def _target(
        self, target: Target, inputs: Arrays, latent: Floats, rng: np.random.Generator
    ) -> NDArray[Any]:
        field = followed(target, self.fields)
        if field is None:
            values = from_latent(target, latent, self.seed)
        else:
            values = from_positions(target, field, inputs[field.name], self.seed, rng)
        values = without_ignored(target, values, rng)
        return values.reshape(-1, *target.shape[1:]) if target.merged else values

    @property
    def _latent(self) -> int:
        free = [target for target in self.targets if followed(target, self.fields) is None]
        most = max((target.classes or 0 for target in free), default=0)
        return min(max(MOST_TOPICS, most), MOST_DIRECTIONS)

    @cached_property
    def _layers(self) -> dict[int, Floats]:
        """(latent, features) by the position of each field of numbers."""
        return {
            position: layer(
                self._latent,
                int(np.prod(field.shape)),
                np.random.default_rng([self.seed, _LAYER_KEY, position]),
            )
            for position, field in enumerate(self.fields)
            if field.kind == "numbers"
        }
