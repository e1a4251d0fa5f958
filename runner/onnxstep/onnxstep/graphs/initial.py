"""Initial values: how a weightless file lists them, and how they are drawn, the same everywhere.

The metadata of such a file has JSON, checked here to the last value; whether it agrees with the
graph is checked in ``parameters``:

    epochcost.parameters = {"dense1.weight": {"distribution": "uniform", "scale": 0.06, "seed": 0}}
    epochcost.state = {"norm1.running_var": {"distribution": "constant", "scale": 1, "seed": 1}}

The counter-based generator Philox 4x64, keyed by the parameter's seed and the run's seed, gives
64-bit words whose sequence NumPy guarantees; the floats are made from the words here, because
NumPy may change how ``Generator`` does it. Every step of ``uniform`` and ``constant`` is exact or
rounded once as IEEE 754 says. ``normal`` takes a logarithm and a cosine in float64, which may
differ in the last bit between math libraries and then, once in millions of values, in the rounded
float32.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from onnxstep.errors import ModelError
from onnxstep.graphs.tensors import one_line

# Values that are drawn by one thread. Even, so that the pairs of ``normal`` never straddle two
# chunks, whose values depend on it.
_CHUNK = 2**20
# Values drawn at once: their float64 scratch space stays in a cache.
_BLOCK = 2**15
# Philox counts its words by fours.
_WORDS_AT_ONCE = 4
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
    """The values of one parameter in the run of that seed, drawn on all CPUs of this process."""
    values = np.empty(math.prod(shape), dtype=dtype)
    randoms = _Words(np.array([initial.seed, seed], dtype=np.uint64))
    fill = DISTRIBUTIONS[initial.distribution]

    def fill_chunk(begin: int) -> None:
        fill(randoms, begin, values[begin : begin + _CHUNK], initial.scale)

    on_all_cpus(fill_chunk, range(0, values.size, _CHUNK))
    return values.reshape(shape)


def on_all_cpus(fill: Callable[[int], None], begins: range) -> None:
    """Fill the parts that begin there on all CPUs of this process; raises what filling one does."""
    if len(begins) == 1:  # a pool takes longer to start
        fill(begins[0])
    else:
        with ThreadPoolExecutor() as pool:
            list(pool.map(fill, begins))


@dataclass(frozen=True)
class _Words:
    """The random words of a parameter, to be read from any place on."""

    key: NDArray[np.uint64]

    def after(self, place: int) -> np.random.Philox:
        """Generator of the words that follow the first ``place`` ones."""
        generator = np.random.Philox(key=self.key, counter=place // _WORDS_AT_ONCE)
        generator.random_raw(place % _WORDS_AT_ONCE)
        return generator


def _uniform(randoms: _Words, begin: int, part: NDArray[Any], scale: float) -> None:
    """Uniform on [-scale, scale)."""
    following = randoms.after(begin)
    for block in _blocks(part.size):
        part[block] = (2 * _unit_interval(following, block) - 1) * scale


def _normal(randoms: _Words, begin: int, part: NDArray[Any], scale: float) -> None:
    """Normal, by Box and Muller (Annals of Mathematical Statistics 29, 1958).

    A pair of values takes its radius from the first half of the words and its angle from the other.
    """
    pairs = (part.size + 1) // 2
    cosines, sines = part[:pairs], part[pairs:]
    radii, angles = randoms.after(begin), randoms.after(begin + pairs)
    for block in _blocks(pairs):
        # 1 - u is never 0.
        radius = np.sqrt(-2 * np.log(1 - _unit_interval(radii, block)))
        angle = 2 * np.pi * _unit_interval(angles, block)
        cosines[block] = radius * np.cos(angle) * scale
        sine = radius * np.sin(angle) * scale
        sines[block] = sine[: len(sines[block])]


def _constant(_randoms: _Words, _begin: int, part: NDArray[Any], scale: float) -> None:
    part[...] = scale


def _blocks(count: int) -> Iterator[slice]:
    return (slice(at, min(at + _BLOCK, count)) for at in range(0, count, _BLOCK))


def _unit_interval(generator: np.random.Philox, block: slice) -> NDArray[np.float64]:
    """Uniform on [0, 1) with 53 random bits."""
    upper = generator.random_raw(block.stop - block.start) >> np.uint64(11)
    return np.asarray(upper, np.float64) * _UNIT


DISTRIBUTIONS: dict[str, Callable[[_Words, int, NDArray[Any], float], None]] = {
    "uniform": _uniform,
    "normal": _normal,
    "constant": _constant,
}


METADATA_KEY = "epochcost.parameters"
STATE_KEY = "epochcost.state"
# Far above any initial value in use, and low enough that 6 standard deviations stay within the
# 65504 of float16.
MAX_SCALE = 10_000.0
_KEYS = {"distribution", "scale", "seed"}


def listed_parameters(model: onnx.ModelProto) -> Mapping[str, Initial] | None:
    """The parameters that the metadata lists by name; None when the file is an ordinary one.

    Raises ModelError when the list is not as the module's docstring shows it.
    """
    return _listed(model, METADATA_KEY)


def listed_state(model: onnx.ModelProto) -> Mapping[str, Initial]:
    """The running statistics that the metadata lists by name; ModelError as for parameters."""
    return _listed(model, STATE_KEY) or {}


def _listed(model: onnx.ModelProto, key: str) -> Mapping[str, Initial] | None:
    texts = [entry.value for entry in model.metadata_props if entry.key == key]
    return _read(key, texts[-1]) if texts else None


@lru_cache(maxsize=8)  # every question about a model's inputs needs its lists
def _read(key: str, text: str) -> Mapping[str, Initial]:
    listed = _parse(key, text)
    if not isinstance(listed, dict):
        raise ModelError(f"{key}: expected a JSON object by name, got {listed!r:.80}")
    return MappingProxyType(
        {name: _initial(f"{key}: {name!r}", entry) for name, entry in listed.items()}
    )


def _parse(key: str, text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=lambda pairs: _unique(key, pairs))
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{key}: expected JSON; {one_line(error)}") from None


def _unique(key: str, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise ModelError(f"{key}: a name appears twice in {sorted(k for k, _ in pairs)}")
    return entries


def _initial(where: str, entry: Any) -> Initial:
    if not isinstance(entry, dict) or entry.keys() != _KEYS:
        raise ModelError(f"{where}: expected distribution, scale and seed, got {entry!r:.80}")
    distribution, scale, seed = entry["distribution"], entry["scale"], entry["seed"]
    if not isinstance(distribution, str) or distribution not in DISTRIBUTIONS:
        choices = ", ".join(DISTRIBUTIONS)
        raise ModelError(f"{where}: distribution: expected {choices}, got {distribution!r:.80}")
    if type(scale) not in (int, float) or not abs(scale) <= MAX_SCALE:  # NaN is not
        raise ModelError(
            f"{where}: scale: expected a number within ±{MAX_SCALE:g}, got {scale!r:.80}"
        )
    if type(seed) is not int or not 0 <= seed < 2**64:
        raise ModelError(
            f"{where}: seed: expected an integer from 0 to 2**64 - 1, got {seed!r:.80}"
        )
    return Initial(distribution, float(scale), seed)
