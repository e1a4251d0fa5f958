"""Data to learn from: a fixed random network draws inputs and labels them.

A latent factor z ~ N(0, I) passes one fixed random layer and a squashing, plus noise, to become
the inputs; the label is the largest of a fixed random readout of z. What the labels depend on is
thus in the inputs, spread over all features, and a model can learn it. The same seed gives the same
data. Which batches are drawn when is left to ``train.batches``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Directions of variation: enough that classes are not told apart by one feature.
_LATENT = 16
# Above this many classes readouts share directions: memory is 4 bytes for each class and direction.
_LATENT_MAXIMUM = 64
# Spread of the squashed inputs: most of the range is used, little of it is saturated.
_GAIN = 1.5
_NOISE = 0.25
_READOUT_KEY, _LAYER_KEY, _EXAMPLES_KEY = 0, 1, 2

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Field:
    """A graph input: the shape of one example, and its half-open range ``[low, high)``."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    low: float
    high: float


@dataclass(frozen=True)
class Batch:
    """Examples along axis 0: an array per field, and int64 labels in ``[0, classes)``."""

    inputs: Arrays
    labels: NDArray[np.int64]


@dataclass(frozen=True)
class Teacher:
    """Draws labelled examples; ``classes`` are equally likely up to 64, nearly so above."""

    fields: Sequence[Field]
    classes: int
    seed: int

    def draw(self, stream: int, index: int, size: int) -> Batch:
        """``size`` examples: batch ``index`` of an endless ``stream``, the same at each call."""
        rng = np.random.default_rng([self.seed, _EXAMPLES_KEY, stream, index])
        latent = rng.standard_normal((size, self._latent), dtype=np.float32)
        inputs = {
            field.name: _squashed(field, latent @ layer, rng)
            for field, layer in zip(self.fields, self._layers, strict=True)
        }
        return Batch(inputs, np.argmax(latent @ self._readout, axis=1).astype(np.int64))

    @property
    def _latent(self) -> int:
        return min(max(_LATENT, self.classes), _LATENT_MAXIMUM)

    @cached_property
    def _readout(self) -> NDArray[np.float32]:
        """(latent, classes): orthonormal columns make the classes' scores alike and independent."""
        rng = np.random.default_rng([self.seed, _READOUT_KEY])
        weights = rng.standard_normal((self._latent, self.classes))
        if self.classes <= self._latent:
            weights = np.linalg.qr(weights)[0]
        return np.asarray(weights / np.linalg.norm(weights, axis=0), dtype=np.float32)

    @cached_property
    def _layers(self) -> tuple[NDArray[np.float32], ...]:
        """(latent, features) per field, scaled so that each feature has unit variance."""
        return tuple(
            np.random.default_rng([self.seed, _LAYER_KEY, position]).standard_normal(
                (self._latent, int(np.prod(field.shape))), dtype=np.float32
            )
            / np.float32(np.sqrt(self._latent))
            for position, field in enumerate(self.fields)
        )


def _squashed(
    field: Field, activations: NDArray[np.float32], rng: np.random.Generator
) -> NDArray[Any]:
    noise = rng.standard_normal(activations.shape, dtype=np.float32)
    share = 1 / (1 + np.exp(-(_GAIN * activations + _NOISE * noise)))
    values = (field.low + (field.high - field.low) * share).reshape(-1, *field.shape)
    if np.issubdtype(field.dtype, np.integer):
        values = np.clip(np.floor(values), field.low, field.high - 1)
    return np.ascontiguousarray(values, dtype=field.dtype)
