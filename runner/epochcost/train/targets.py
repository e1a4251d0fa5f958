"""Drawing targets that can be learnt: from an example's latent factors, or from its positions.

A target with a class for each position of an input (a language model's tokens) follows from what
the input holds there, one of many classes for a whole text from its last token; any other follows
from the latent factors, which the inputs tell of. The
random maps are fixed by the seed, the number of classes and the shape alone, so that two targets of
the same kind agree.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epochcost.train.examples import Field, Target
from epochcost.train.inputs import Floats, layer, squashed

# PyTorch's ``ignore_index``: a position that has no class and does not count.
IGNORED = -100
# Above this many classes readouts share directions: memory is 4 bytes for each class and direction.
MOST_DIRECTIONS = 64
# The least number of directions: enough that classes are not told apart by one feature. A text has
# room to tell of no more, so that more classes of a text follow from its last token.
MOST_TOPICS = 16
# This share of the labels of positions is arbitrary, as no text can be foretold for sure.
_ARBITRARY_SHARE = 0.1
# Scores of so many classes and examples are held at once.
_SCORES = 2**22
# With it the logistic function is within 0.01 of the normal distribution's (Bowling et al. 2009,
# Journal of Industrial Engineering and Management 2(1)), so that classes are equally likely.
_LOGISTIC_TO_NORMAL = 1.702
_READOUT_KEY, _MAP_KEY, _NUMBERS_KEY = 0, 3, 4


def from_latent(target: Target, latent: Floats, seed: int) -> NDArray[Any]:
    """Values [examples, ...] that follow from the latent factors [examples, directions].

    A class for each example is the largest of a random readout; several values have a random
    direction each.
    """
    if target.classes is not None and target.positions == 1 and target.classes > 2:
        values: NDArray[Any] = _largest(latent, readout(latent.shape[1], target.classes, seed))
    else:
        rng = np.random.default_rng([seed, _NUMBERS_KEY, *target.shape])
        activations = latent @ layer(latent.shape[1], target.positions, rng)
        values = _scaled(target, activations)
    return np.asarray(values.reshape(-1, *target.shape), dtype=target.dtype)


def from_positions(
    target: Target, field: Field, held: NDArray[Any], seed: int, rng: np.random.Generator
) -> NDArray[Any]:
    """Classes [examples, ...] that follow from what the ``field`` holds at the same positions.

    Of several tokens at a position (the letters of a word) the largest counts, of numbers the
    largest of a random readout. A fixed random map gives each such key its class.
    """
    assert target.classes is not None, "only classes follow from positions"
    if target.positions == 1:
        held = held[:, -1:]
    held = held.reshape(len(held), target.positions, -1)
    if field.kind == "tokens":
        keys, count = held.max(axis=2).astype(np.int64), int(field.high)
    else:
        count = min(max(2, target.classes), MOST_DIRECTIONS)
        keys = _loudest(field, held, count, seed)
    classes = _map(count, target.classes, seed)[keys]
    arbitrary = rng.random(classes.shape, dtype=np.float32) < _ARBITRARY_SHARE
    classes[arbitrary] = rng.integers(0, target.classes, int(arbitrary.sum()))
    return np.asarray(classes.reshape(-1, *target.shape), dtype=target.dtype)


def without_ignored(target: Target, values: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
    """The values with the ignored share of the positions taken out; at least one stays."""
    if not target.ignored_share:
        return values
    ignored = rng.random(values.shape, dtype=np.float32) < target.ignored_share
    ignored.flat[0] &= not ignored.all()
    return np.where(ignored, np.array(IGNORED, values.dtype), values)


def followed(target: Target, fields: Sequence[Field]) -> Field | None:
    """The input that the target's classes follow from; None where it is the latent factors.

    It is one whose leading axes are the target's positions: tokens before numbers, large
    vocabularies before small ones, later inputs before earlier ones (a decoder's follow its
    encoder's).
    """
    if target.classes is None:
        return None
    fitting = [field for field in fields if field.kind != "constant" and _fits(target, field)]
    ranks = [(field.kind == "tokens", field.kind == "tokens" and field.high) for field in fitting]
    best = max(ranks, default=None)
    return next(
        (f for f, rank in zip(fitting[::-1], ranks[::-1], strict=True) if rank == best), None
    )


def readout(directions: int, classes: int, seed: int) -> Floats:
    """(directions, classes): orthonormal columns make the classes' scores alike and independent."""
    rng = np.random.default_rng([seed, _READOUT_KEY])
    weights = rng.standard_normal((directions, classes))
    if classes <= directions:
        weights = np.linalg.qr(weights)[0]
    return np.asarray(weights / np.linalg.norm(weights, axis=0), dtype=np.float32)


def _fits(target: Target, field: Field) -> bool:
    if target.positions == 1:
        return field.kind == "tokens" and field.shape != () and (target.classes or 0) > MOST_TOPICS
    sizes = {math.prod(field.shape[:axes]) for axes in range(1, len(field.shape) + 1)}
    return target.positions in sizes


def _largest(latent: Floats, weights: Floats) -> NDArray[np.int64]:
    """The class of the largest score, a slice of the examples at a time."""
    rows = max(1, _SCORES // weights.shape[1])
    parts = [latent[at : at + rows] @ weights for at in range(0, len(latent), rows)]
    return np.concatenate([np.argmax(part, axis=1) for part in parts])


def _scaled(target: Target, activations: Floats) -> NDArray[Any]:
    if target.classes is None:
        return target.low + (target.high - target.low) * squashed(activations)
    share = 1 / (1 + np.exp(-_LOGISTIC_TO_NORMAL * activations))
    return np.asarray(np.minimum(share * target.classes, target.classes - 1), dtype=np.int64)


def _loudest(field: Field, held: NDArray[Any], count: int, seed: int) -> NDArray[np.int64]:
    rng = np.random.default_rng([seed, _MAP_KEY, count])
    middle = (field.low + field.high) / 2
    weights = rng.standard_normal((held.shape[2], count), dtype=np.float32)
    keys: NDArray[np.int64] = np.argmax((held - middle).astype(np.float32) @ weights, axis=2)
    return keys


def _map(keys: int, classes: int, seed: int) -> NDArray[np.int64]:
    """A class for each key; where there are enough, each class has as many keys."""
    rng = np.random.default_rng([seed, _MAP_KEY])
    return rng.permutation(max(keys, classes))[:keys] % classes
