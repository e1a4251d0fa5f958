"""Drawing a graph's inputs, so that each tells of the latent factors of its example.

Latent factors are ``[examples, directions]``, standard normal. What is asked about the examples is
left to ``targets``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from epochcost.train.examples import Field

Floats = NDArray[np.float32]
# Spread of the squashed inputs: most of the range is used, little of it is saturated.
_GAIN = 1.5
_NOISE = 0.25
# The others are drawn from the whole vocabulary, as function words are in any text.
_TOPICAL_SHARE = 0.75


def layer(directions: int, features: int, rng: np.random.Generator) -> Floats:
    """A fixed random layer [directions, features] that gives each feature unit variance."""
    weights = rng.standard_normal((directions, features), dtype=np.float32)
    return weights / np.float32(np.sqrt(directions))


def squashed(activations: Floats) -> Floats:
    """Into (0, 1), most of which unit variance then uses."""
    return np.asarray(1 / (1 + np.exp(-_GAIN * activations)), dtype=np.float32)


def numbers(field: Field, activations: Floats, rng: np.random.Generator) -> NDArray[Any]:
    """Noisy activations [examples, features] squashed into the field's range."""
    noise = rng.standard_normal(activations.shape, dtype=np.float32)
    share = squashed(activations + np.float32(_NOISE / _GAIN) * noise)
    values = (field.low + (field.high - field.low) * share).reshape(-1, *field.shape)
    if np.issubdtype(field.dtype, np.integer):
        values = np.clip(np.floor(values), field.low, field.high - 1)
    return np.ascontiguousarray(values, dtype=field.dtype)


def tokens(field: Field, latent: Floats, rng: np.random.Generator) -> NDArray[Any]:
    """A text of so many topics: most of its tokens tell the sign of one latent factor each.

    A vocabulary is dealt out to the two signs of every factor, frequent tokens first; the other
    tokens come from all of it. Which positions tell of what is drawn anew for each example, so that
    bags of words, convolutions, recurrences and attention can all learn from it.
    """
    examples, directions = latent.shape
    shape = (examples, int(np.prod(field.shape)))
    vocabulary, groups = int(field.high), 2 * directions
    factor = rng.integers(0, directions, shape)
    sign = np.take_along_axis(latent, factor, axis=1) > 0
    topical = frequent(max(1, vocabulary // groups), shape, rng) * groups + 2 * factor + sign
    common = frequent(vocabulary, shape, rng)
    told = rng.random(shape, dtype=np.float32) < _TOPICAL_SHARE
    drawn = np.where(told, topical, common) % vocabulary
    return np.ascontiguousarray(drawn.reshape(-1, *field.shape), dtype=field.dtype)


def frequent(count: int, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.int64]:
    """Indices below ``count`` by Zipf's law: P(k) = log((k + 2) / (k + 1)) / log(count + 1).

    The form is that of TensorFlow's ``log_uniform_candidate_sampler``.
    """
    drawn = np.exp(rng.random(shape, dtype=np.float32) * np.float32(np.log(count + 1))) - 1
    return np.asarray(np.minimum(drawn, count - 1), dtype=np.int64)


def constant(field: Field, examples: int) -> NDArray[Any]:
    """The same value everywhere."""
    return np.full((examples, *field.shape), field.low, dtype=field.dtype)
