"""Initial values: how a parameter's first values are drawn, the same on every machine.

Owns the distributions and their random numbers; which parameters there are is known in
``parameters``.

The counter-based generator Philox 4x64, keyed by the parameter's seed and the run's seed, gives
64-bit words whose sequence NumPy guarantees; the floats are made from the words here, because
NumPy may change how ``Generator`` does it. Every step of ``uniform`` and ``constant`` is exact or
rounded once as IEEE 754 says. ``normal`` takes a logarithm and a cosine in float64, which may
differ in the last bit between math libraries and then, once in millions of values, in the rounded
float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Values drawn at once: bounds the float64 scratch space, whatever the parameter's size. Even, so
# that the pairs of ``normal`` never straddle two chunks.
_CHUNK = 2**20
_UNIT = 2.0**-53  # spacing of the floats made from a word's upper 53 bits


@dataclass(frozen=True)
class Initial:
    """A distribution of first values.

    ``uniform`` is on [-scale, scale), ``normal`` has mean 0 and standard deviation ``scale``,
    ``constant`` is ``scale`` itself. ``seed`` tells parameters of the same distribution apart.
    """

    distribution: str
    scale: float
    seed: int


def draw(
    initial: Initial, shape: tuple[int, ...], dtype: np.dtype[Any], seed: int = 0
) -> NDArray[Any]:
    """The values of one parameter in the run of that seed."""
    values = np.empty(math.prod(shape), dtype=dtype)
    words = np.random.Philox(key=np.array([initial.seed, seed], dtype=np.uint64))
    distribution = DISTRIBUTIONS[initial.distribution]
    for start in range(0, values.size, _CHUNK):
        part = values[start : start + _CHUNK]
        part[...] = distribution(words, part.size) * initial.scale
    return values.reshape(shape)


def _uniform(words: np.random.Philox, count: int) -> NDArray[np.float64]:
    """Uniform on [-1, 1)."""
    return 2 * _unit_interval(words, count) - 1


def _normal(words: np.random.Philox, count: int) -> NDArray[np.float64]:
    """Standard normal, by Box and Muller (Annals of Mathematical Statistics 29, 1958)."""
    pairs = (count + 1) // 2
    radius = np.sqrt(-2 * np.log(1 - _unit_interval(words, pairs)))  # 1 - u is never 0
    angle = 2 * np.pi * _unit_interval(words, pairs)
    return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[:count]


def _constant(_words: np.random.Philox, count: int) -> NDArray[np.float64]:
    return np.ones(count)


def _unit_interval(words: np.random.Philox, count: int) -> NDArray[np.float64]:
    """Uniform on [0, 1) with 53 random bits."""
    upper = words.random_raw(count) >> np.uint64(11)
    return upper.astype(np.float64) * _UNIT


DISTRIBUTIONS: dict[str, Callable[[np.random.Philox, int], NDArray[np.float64]]] = {
    "uniform": _uniform,
    "normal": _normal,
    "constant": _constant,
}
