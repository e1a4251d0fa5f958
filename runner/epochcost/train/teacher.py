"""Draw synthetic data that a model can learn: inputs, and targets that depend on them.

Each example has latent factors z ~ N(0, I); ``directions`` is their number. Fixed random layers and
noise turn z into inputs. Targets depend on z or on tokens. The seed decides all random numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Arrays = Mapping[str, NDArray[Any]]
Kind = Literal["numbers", "tokens", "constant"]


@dataclass(frozen=True)
class InputField:
    """Shape and type of an example of a graph input, with values in ``low <= value < high``.

    The kind ``tokens`` is for indices of a vocabulary. For ``constant``, all values are ``low``.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    low: float
    high: float
    kind: Kind = "numbers"

    @property
    def example_bytes(self) -> int:
        """Bytes that the input's values take in one example."""
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True)
class TargetField:
    """A graph input that holds the targets of a loss; ``shape`` is the shape of one example.

    Integer targets are class indices. Float targets are 0 or 1 with ``classes``, else numbers in
    ``low <= value < high``. A share ``ignored_share`` of labels is ``IGNORED``. The graph's input
    has the shape [batch size, *shape], or [batch size · shape[0], *shape[1:]] if ``merged``.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    classes: int | None = None
    low: float = 0.0
    high: float = 1.0
    ignored_share: float = 0.0
    merged: bool = False

    @property
    def positions(self) -> int:
        """Number of values in the target of one example."""
        return math.prod(self.shape)

    @property
    def example_bytes(self) -> int:
        """Bytes that the target's values take in one example."""
        return self.positions * self.dtype.itemsize


# Spread of the squashed inputs: most of the range is used, little of it is saturated.
_GAIN = 1.5
_NOISE = 0.25
# The other tokens are drawn from the whole vocabulary, like function words of any text.
_TOPICAL_SHARE = 0.75


def _random_layer(directions: int, features: int, rng: np.random.Generator) -> Floats:
    """Random weights [directions, features] of a layer whose outputs have unit variance."""
    weights = rng.standard_normal((directions, features), dtype=np.float32)
    return weights / np.float32(np.sqrt(directions))


def _squash_to_unit_interval(activations: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-_GAIN * activations)), dtype=np.float32)


def _draw_numbers(field: InputField, activations: Floats, rng: np.random.Generator) -> NDArray[Any]:
    """Draw values in the field's range from ``activations`` [examples, features] and noise."""
    noise = rng.standard_normal(activations.shape, dtype=np.float32)
    share = _squash_to_unit_interval(activations + np.float32(_NOISE / _GAIN) * noise)
    values = (field.low + (field.high - field.low) * share).reshape(-1, *field.shape)
    if np.issubdtype(field.dtype, np.integer):
        values = np.clip(np.floor(values), field.low, field.high - 1)
    return np.ascontiguousarray(values, dtype=field.dtype)


def _draw_tokens(field: InputField, latent: Floats, rng: np.random.Generator) -> NDArray[Any]:
    """Draw texts in which most tokens reveal the sign of a latent factor of the example.

    Each token of the vocabulary stands for one factor and one sign. About three quarters of a
    text's tokens stand for random factors with their signs in the example. The others are random.
    """
    examples, directions = latent.shape
    shape = (examples, int(np.prod(field.shape)))
    vocabulary, groups = int(field.high), 2 * directions
    factor = rng.integers(0, directions, shape)
    sign = np.take_along_axis(latent, factor, axis=1) > 0
    topical = draw_zipf(max(1, vocabulary // groups), shape, rng) * groups + 2 * factor + sign
    common = draw_zipf(vocabulary, shape, rng)
    topical_share = rng.random(shape, dtype=np.float32) < _TOPICAL_SHARE
    drawn = np.where(topical_share, topical, common) % vocabulary
    return np.ascontiguousarray(drawn.reshape(-1, *field.shape), dtype=field.dtype)


def draw_zipf(count: int, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw indices k < ``count`` with probability log((k + 2) / (k + 1)) / log(count + 1).

    This approximates Zipf's law, as TensorFlow's ``log_uniform_candidate_sampler`` does.
    """
    drawn = np.exp(rng.random(shape, dtype=np.float32) * np.float32(np.log(count + 1))) - 1
    return np.asarray(np.minimum(drawn, count - 1), dtype=np.int64)


# PyTorch's ``ignore_index``: a position that has no class and does not count.
IGNORED = -100
# With more classes readouts share directions: memory is 4 bytes for each class and direction.
_MOST_DIRECTIONS = 64
# The least number of directions: enough that no single feature separates the classes. A text holds
# no more, so targets of a text with more classes depend on its last token.
_MOST_TOPICS = 16
# This share of the labels of positions is random: no text can be predicted with certainty.
_ARBITRARY_SHARE = 0.1
# Most scores (classes times examples) in memory at once.
_SCORES = 2**22
# With this factor the logistic function is within 0.01 of the normal distribution's (Bowling et al.
# 2009, Journal of Industrial Engineering and Management 2(1)), so that classes are equally likely.
_LOGISTIC_TO_NORMAL = 1.702
_READOUT_KEY, _MAP_KEY, _NUMBERS_KEY = 0, 3, 4


def _targets_from_latent(target: TargetField, latent: Floats, seed: int) -> NDArray[Any]:
    """Target values [examples, ...] that depend on the latent factors [examples, directions].

    A single label of more than two classes is the class with the largest random linear score. Other
    values are random linear functions, squashed into the range and, for classes, rounded down.
    """
    if target.classes is not None and target.positions == 1 and target.classes > 2:
        values: NDArray[Any] = _class_of_largest_score(
            latent, readout(latent.shape[1], target.classes, seed)
        )
    else:
        rng = np.random.default_rng([seed, _NUMBERS_KEY, *target.shape])
        activations = latent @ _random_layer(latent.shape[1], target.positions, rng)
        values = _scaled(target, activations)
    return np.asarray(values.reshape(-1, *target.shape), dtype=target.dtype)


def _classes_from_tokens(
    target: TargetField,
    field: InputField,
    tokens: NDArray[Any],
    seed: int,
    rng: np.random.Generator,
) -> NDArray[Any]:
    """Compute the target's classes [examples, ...] from the tokens of ``field``.

    A fixed random map gives each token a class. A single label is the class of the last token.
    Otherwise, each position has the class of its token, or of the largest token id if it has
    several. A tenth of the classes is random.
    """
    assert target.classes is not None, "only classes follow from positions"
    if target.positions == 1:
        tokens = tokens[:, -1:]
    keys = tokens.reshape(len(tokens), target.positions, -1).max(axis=2).astype(np.int64)
    classes = _random_class_by_key(int(field.high), target.classes, seed)[keys]
    arbitrary = rng.random(classes.shape, dtype=np.float32) < _ARBITRARY_SHARE
    classes[arbitrary] = rng.integers(0, target.classes, int(arbitrary.sum()))
    return np.asarray(classes.reshape(-1, *target.shape), dtype=target.dtype)


def _ignore_share_of_labels(
    target: TargetField, values: NDArray[Any], rng: np.random.Generator
) -> NDArray[Any]:
    """Replace each label by ``IGNORED`` with probability ``ignored_share``; at least one stays."""
    if not target.ignored_share:
        return values
    ignored = rng.random(values.shape, dtype=np.float32) < target.ignored_share
    ignored.flat[0] &= not ignored.all()
    return np.where(ignored, np.array(IGNORED, values.dtype), values)


def _source_field(target: TargetField, fields: Sequence[InputField]) -> InputField | None:
    """The input whose tokens decide the target's classes; None if latent factors decide them.

    An input decides several positions if it has tokens for each position, and a single label if
    there are more than ``_MOST_TOPICS`` classes. The input with the largest vocabulary is chosen.
    """
    if target.classes is None:
        return None
    fitting = [field for field in fields if field.kind == "tokens" and _fits(target, field)]
    # Of equal vocabularies, the last is chosen, because a decoder's inputs follow its encoder's.
    return max(fitting[::-1], key=lambda field: field.high, default=None)


def readout(directions: int, classes: int, seed: int) -> Floats:
    """Weights [directions, classes] that turn latent factors into equally distributed scores.

    With at most ``directions`` classes, the columns are orthonormal and the scores independent.
    """
    rng = np.random.default_rng([seed, _READOUT_KEY])
    weights = rng.standard_normal((directions, classes))
    if classes <= directions:
        weights = np.linalg.qr(weights)[0]
    return np.asarray(weights / np.linalg.norm(weights, axis=0), dtype=np.float32)


def _fits(target: TargetField, field: InputField) -> bool:
    if target.positions == 1:
        return field.shape != () and (target.classes or 0) > _MOST_TOPICS
    sizes = {math.prod(field.shape[:axes]) for axes in range(1, len(field.shape) + 1)}
    return target.positions in sizes


def _class_of_largest_score(latent: Floats, weights: Floats) -> NDArray[np.int64]:
    # Slices of rows save memory.
    rows = max(1, _SCORES // weights.shape[1])
    parts = [latent[at : at + rows] @ weights for at in range(0, len(latent), rows)]
    return np.concatenate([np.argmax(part, axis=1) for part in parts])


def _scaled(target: TargetField, activations: Floats) -> NDArray[Any]:
    if target.classes is None:
        return target.low + (target.high - target.low) * _squash_to_unit_interval(activations)
    share = 1 / (1 + np.exp(-_LOGISTIC_TO_NORMAL * activations))
    return np.asarray(np.minimum(share * target.classes, target.classes - 1), dtype=np.int64)


def _random_class_by_key(keys: int, classes: int, seed: int) -> NDArray[np.int64]:
    """Random class of each key (token); the classes' numbers of keys differ by at most one."""
    rng = np.random.default_rng([seed, _MAP_KEY])
    return rng.permutation(max(keys, classes))[:keys] % classes


_LAYER_KEY, _EXAMPLES_KEY = 1, 2


@dataclass(frozen=True)
class Teacher:
    """Draws batches of synthetic examples: inputs and targets.

    The classes of a single label from latent factors are equally likely if there are at most 64.
    """

    fields: Sequence[InputField]
    targets: Sequence[TargetField]
    seed: int

    @property
    def example_bytes(self) -> int:
        """Bytes that all inputs and targets take in one example."""
        inputs = sum(field.example_bytes for field in self.fields)
        return inputs + sum(target.example_bytes for target in self.targets)

    def draw(self, stream: int, index: int, size: int) -> dict[str, NDArray[Any]]:
        """Draw batch ``index``, of ``size`` examples, from the endless sequence ``stream``.

        Returns arrays by name, with examples along axis 0. Equal arguments give equal batches.
        """
        rng = np.random.default_rng([self.seed, _EXAMPLES_KEY, stream, index])
        latent = rng.standard_normal((size, self._direction_count), dtype=np.float32)
        inputs = {field.name: self._input(field, latent, rng) for field in self.fields}
        targets = {
            target.name: self._target(target, inputs, latent, rng) for target in self.targets
        }
        return inputs | targets

    def _input(self, field: InputField, latent: Floats, rng: np.random.Generator) -> NDArray[Any]:
        if field.kind == "constant":
            return np.full((len(latent), *field.shape), field.low, dtype=field.dtype)
        if field.kind == "tokens":
            return _draw_tokens(field, latent, rng)
        return _draw_numbers(field, latent @ self._layers_by_input[field.name], rng)

    def _target(
        self, target: TargetField, inputs: Arrays, latent: Floats, rng: np.random.Generator
    ) -> NDArray[Any]:
        field = _source_field(target, self.fields)
        if field is None:
            values = _targets_from_latent(target, latent, self.seed)
        else:
            values = _classes_from_tokens(target, field, inputs[field.name], self.seed, rng)
        values = _ignore_share_of_labels(target, values, rng)
        return values.reshape(-1, *target.shape[1:]) if target.merged else values

    @property
    def _direction_count(self) -> int:
        free = [target for target in self.targets if _source_field(target, self.fields) is None]
        most = max((target.classes or 0 for target in free), default=0)
        return min(max(_MOST_TOPICS, most), _MOST_DIRECTIONS)

    @cached_property
    def _layers_by_input(self) -> dict[str, Floats]:
        """Random weights [directions, features] of numeric inputs, by the inputs' names."""
        return {
            field.name: _random_layer(
                self._direction_count,
                int(np.prod(field.shape)),
                np.random.default_rng([self.seed, _LAYER_KEY, position]),
            )
            for position, field in enumerate(self.fields)
            if field.kind == "numbers"
        }
