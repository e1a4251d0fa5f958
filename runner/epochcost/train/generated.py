"""Generate texts by a Markov chain, and images of shapes; the best possible result is known.

No model predicts the chain's next character better than the chain's entropy permits. A declared
share of the labels of images is wrong, in the held-out part too. So a model's accuracy can exceed
the share of right labels only by chance. The seed decides all numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from epochcost.specs.reference_data import Generated

# The classes of images: shapes by fill.
CLASSES = 10
_TEXTURES = 2
_NOISE = 12.0
_CHUNK = 512


@dataclass(frozen=True)
class MarkovChain:
    """A source of text in which the two previous characters decide the odds of the next character.

    ``probabilities`` is [first, second, next].
    """

    probabilities: NDArray[np.float64]

    def draw(self, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw a text of ``count`` characters, as indices."""
        bounds = np.cumsum(self.probabilities, axis=2)
        bounds[..., -1] = 1.0
        thresholds = rng.random(count)
        text = np.zeros(count, np.int64)
        first = second = 0
        for place in range(count):
            follower = int(np.searchsorted(bounds[first, second], thresholds[place], side="right"))
            text[place] = follower
            first, second = second, follower
        return text


def markov_chain(declared: Generated) -> MarkovChain:
    """The Markov chain that a spec declares, with probabilities from a Dirichlet distribution."""
    assert declared.characters is not None, "the schema demands it of chains"
    size = declared.characters
    rng = np.random.default_rng([declared.seed, 0])
    rows = rng.dirichlet(np.full(size, float(declared.concentration)), size * size)
    return MarkovChain(rows.reshape(size, size, size))


def draw_images(declared: Generated, count: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Draw images [count, channels, side, side] and labels, of which a declared share is wrong."""
    rng = np.random.default_rng([declared.seed, 1])
    labels = rng.integers(0, CLASSES, count)
    images = [_drawn(declared, labels[at : at + _CHUNK], rng) for at in range(0, count, _CHUNK)]
    wrong = rng.random(count) < float(declared.wrong_labels)
    wrong_labels = (labels + rng.integers(1, CLASSES, count)) % CLASSES
    return np.concatenate(images), np.where(wrong, wrong_labels, labels)


def _drawn(
    declared: Generated, labels: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.uint8]:
    """Draw striped or chequered shapes of random place, size and angle on a noisy background.

    The colours of shape and background are independent, but the shape is always brighter.
    """
    assert declared.side is not None, "the schema demands it of images"
    count, side = len(labels), declared.side
    grid = np.arange(side) - (side - 1) / 2
    centre = rng.uniform(-0.15, 0.15, (2, count, 1, 1)) * side
    down, right = grid[:, None] - centre[0], grid[None, :] - centre[1]
    turn = rng.uniform(-0.5, 0.5, (count, 1, 1))
    along = np.cos(turn) * right + np.sin(turn) * down
    across = np.cos(turn) * down - np.sin(turn) * right
    size = rng.uniform(0.25, 0.33, (count, 1, 1)) * side
    inside = _inside(along / size, across / size)[labels // _TEXTURES, np.arange(count)]
    period = side / 8
    striped = np.floor(2 * along / period) % 2
    chequered = (striped + np.floor(2 * across / period)) % 2
    dark = np.where((labels % _TEXTURES)[:, None, None] == 0, striped, chequered)
    shade = np.where(inside, 0.45 + 0.55 * dark, 0.0)[:, None]
    tint = rng.uniform(0.6, 1.0, (count, declared.channels, 1, 1))
    ground = rng.uniform(0.05, 0.25, (count, declared.channels, 1, 1))
    clean = 255 * np.where(inside[:, None], shade * tint, ground)
    return np.clip(clean + rng.normal(0, _NOISE, clean.shape), 0, 255).astype(np.uint8)


def _inside(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Compute a mask of the points inside each shape (disc, square, triangle, cross, ring)."""
    radius = np.hypot(x, y)
    across = np.maximum(np.abs(x), np.abs(y))
    triangle = (y < 0.8) & (np.abs(x) * 1.7 < y + 0.9)
    cross = (across < 1) & (np.minimum(np.abs(x), np.abs(y)) < 0.35)
    return np.stack([radius < 1, across < 0.85, triangle, cross, (radius < 1) & (radius > 0.6)])
