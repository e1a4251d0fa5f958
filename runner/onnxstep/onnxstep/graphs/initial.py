"""Draw the first values of the parameters of a file without weights.

The file's metadata lists the distribution of each parameter, as JSON:

epochcost.parameters = {"dense1.weight": {"distribution": "uniform", "scale": 0.06, "seed": 0}}

The generator is Philox 4x64, keyed by the seeds of the parameter and of the run. Numbers of
``normal`` may differ in the last bit between math libraries.
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

# Values that one thread draws. An even number, so that no pair of ``normal`` spans two chunks.
_CHUNK = 2**20
# Values drawn at once. Their float64 scratch space fits into the cache.
_BLOCK = 2**15
# Philox draws four words at once: the counter advances by one for each four words.
_WORDS_AT_ONCE = 4
_UNIT = 2.0**-53  # spacing of the floats made from the upper 53 bits of a word
_Key = NDArray[np.uint64]


@dataclass(frozen=True)
class Initial:
    """The distribution from which a parameter's first values are drawn.

    ``uniform`` is the uniform distribution on [-scale, scale). ``normal`` has mean 0 and standard
    deviation ``scale``. ``constant`` is always ``scale``.
    """

    distribution: str
    scale: float
    seed: int


def draw(
    initial: Initial, shape: tuple[int, ...], dtype: np.dtype[Any], seed: int = 0
) -> NDArray[Any]:
    """Draw a parameter's first values, on all CPUs; equal seeds of the run give equal values."""
    values = np.empty(math.prod(shape), dtype=dtype)
    key = np.array([initial.seed, seed], dtype=np.uint64)
    fill = DISTRIBUTIONS[initial.distribution]

    def fill_chunk(begin: int) -> None:
        fill(key, begin, values[begin : begin + _CHUNK], initial.scale)

    on_all_cpus(fill_chunk, range(0, values.size, _CHUNK))
    return values.reshape(shape)


def on_all_cpus(fill: Callable[[int], None], begins: range) -> None:
    """Call ``fill`` with each of ``begins`` on all CPUs; raises the error of a call that fails."""
    if len(begins) == 1:  # Starting a thread pool would take longer.
        fill(begins[0])
    else:
        with ThreadPoolExecutor() as pool:
            list(pool.map(fill, begins))


# NumPy guarantees the sequence of the generator's words, but may change the floats of its
# Generator. So this module computes the floats itself.
def _generator_at(key: _Key, word_index: int) -> np.random.Philox:
    generator = np.random.Philox(key=key, counter=word_index // _WORDS_AT_ONCE)
    generator.random_raw(word_index % _WORDS_AT_ONCE)
    return generator


def _fill_uniform(key: _Key, begin: int, values: NDArray[Any], scale: float) -> None:
    following = _generator_at(key, begin)
    for block in _blocks(values.size):
        values[block] = (2 * _draw_from_unit_interval(following, block) - 1) * scale


def _fill_normal(key: _Key, begin: int, values: NDArray[Any], scale: float) -> None:
    """Draw normal numbers by Box and Muller's method (Ann. Math. Statistics 29, 1958)."""
    pairs = (values.size + 1) // 2
    cosines, sines = values[:pairs], values[pairs:]
    # The words from ``begin`` on give first all radii, then all angles.
    radii, angles = _generator_at(key, begin), _generator_at(key, begin + pairs)
    for block in _blocks(pairs):
        # 1 - u is never 0.
        radius = np.sqrt(-2 * np.log(1 - _draw_from_unit_interval(radii, block)))
        angle = 2 * np.pi * _draw_from_unit_interval(angles, block)
        cosines[block] = radius * np.cos(angle) * scale
        sine = radius * np.sin(angle) * scale
        sines[block] = sine[: len(sines[block])]


def _fill_constant(_key: _Key, _begin: int, values: NDArray[Any], scale: float) -> None:
    values[...] = scale


def _blocks(count: int) -> Iterator[slice]:
    return (slice(at, min(at + _BLOCK, count)) for at in range(0, count, _BLOCK))


def _draw_from_unit_interval(generator: np.random.Philox, block: slice) -> NDArray[np.float64]:
    upper = generator.random_raw(block.stop - block.start) >> np.uint64(11)
    return np.asarray(upper, np.float64) * _UNIT


DISTRIBUTIONS: dict[str, Callable[[_Key, int, NDArray[Any], float], None]] = {
    "uniform": _fill_uniform,
    "normal": _fill_normal,
    "constant": _fill_constant,
}


METADATA_KEY = "epochcost.parameters"
STATE_KEY = "epochcost.state"
# Far above any initial value in use, and so low that 6 standard deviations stay within the 65504 of
# float16.
MAX_SCALE = 10_000.0
_KEYS = {"distribution", "scale", "seed"}


def listed_parameters(model: onnx.ModelProto) -> Mapping[str, Initial] | None:
    """Distributions that the metadata lists, by parameter; None without a list.

    Raises ModelError unless the list is JSON and gives each name a distribution, scale and seed.
    """
    return _listed(model, METADATA_KEY)


def listed_state(model: onnx.ModelProto) -> Mapping[str, Initial]:
    """Distributions of the listed running statistics; raises ModelError for an invalid list."""
    return _listed(model, STATE_KEY) or {}


def _listed(model: onnx.ModelProto, key: str) -> Mapping[str, Initial] | None:
    texts = [entry.value for entry in model.metadata_props if entry.key == key]
    return _read(key, texts[-1]) if texts else None


@lru_cache(maxsize=8)  # Every function about a model's inputs reads these lists.
def _read(key: str, text: str) -> Mapping[str, Initial]:
    try:
        listed = json.loads(text, object_pairs_hook=lambda pairs: _unique(key, pairs))
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{key}: expected JSON; {one_line(error)}") from None
    if not isinstance(listed, dict):
        raise ModelError(f"{key}: expected a JSON object by name, got {listed!r:.80}")
    return MappingProxyType(
        {name: _initial(f"{key}: {name!r}", entry) for name, entry in listed.items()}
    )


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
    if type(scale) not in (int, float) or not abs(scale) <= MAX_SCALE:  # false for NaN
        raise ModelError(
            f"{where}: scale: expected a number within ±{MAX_SCALE:g}, got {scale!r:.80}"
        )
    if type(seed) is not int or not 0 <= seed < 2**64:
        raise ModelError(
            f"{where}: seed: expected an integer from 0 to 2**64 - 1, got {seed!r:.80}"
        )
    return Initial(distribution, float(scale), seed)
