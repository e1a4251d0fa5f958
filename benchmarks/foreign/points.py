"""Inputs with which a file runs: its test data, or random numbers of the declared types."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from onnxstep.graphs.binding import symbolic_dimensions
from oracle.posed import is_float
from oracle.suite import Array

Run = Callable[[Mapping[str, Array]], Mapping[str, Array]]
Fill = Callable[[tuple[int, ...], np.random.Generator], Array]
_SIZES = (2, 3, 1, 4, 5, 8, 16, 32, 64, 128, 224)
# Tries until one runs, and then for a better one.
_MOST_TRIES, _MORE_TRIES = 600, 12


def _latin(shape: tuple[int, ...], _draw: np.random.Generator) -> Array:
    """Integers below the longest axis, different along every axis."""
    return np.asarray(np.indices(shape).sum(0) % max(shape, default=1))


def _minus_one_first(shape: tuple[int, ...], _draw: np.random.Generator) -> Array:
    numbers = np.ones(shape)
    numbers.flat[:1] = -1
    return numbers


def _counted(shape: tuple[int, ...], _draw: np.random.Generator) -> Array:
    return np.arange(math.prod(shape)).reshape(shape)


def _coordinates(shape: tuple[int, ...], _: np.random.Generator) -> Array:
    """Different places of a cube, with coordinates along the last axis, as in ScatterND."""
    if not shape or not all(shape):
        return np.zeros(shape)
    places = math.prod(shape[:-1])
    side = math.ceil(places ** (1 / shape[-1]) - 1e-9)
    coordinates = np.unravel_index(np.arange(places), (side,) * shape[-1])
    return np.stack(coordinates, axis=-1).reshape(shape)


def _shape_of_an_output(model: onnx.ModelProto) -> Fill:
    """The declared sizes of an output with as many elements, for Reshape."""
    dims = [value.type.tensor_type.shape.dim for value in model.graph.output]
    sizes = {(len(shape),): [dim.dim_value for dim in shape] for shape in dims}
    return lambda shape, draw: np.array(sizes.get(shape) or _counted(shape, draw))


# Kinds of integers: indices, lengths, axes, shapes. Scattering twice to one place is undefined, so
# different numbers come first.
_WHOLE: tuple[Fill, ...] = (
    _counted,
    _latin,
    lambda shape, draw: draw.integers(0, 2, shape),
    lambda shape, _: np.zeros(shape),
    lambda shape, _: np.ones(shape),
    lambda shape, _: np.full(shape, 2),
    _minus_one_first,
)
# Domains of most functions, of logarithms and roots, and of the inverse hyperbolic cosine.
_RANGES = ((-1.0, 1.0), (0.1, 0.9), (1.1, 2.0))


class NoPointError(Exception):
    """No inputs were found with which a file runs."""


@dataclass(frozen=True)
class Point:
    """Inputs by name, and the sizes of the symbolic dimensions.

    A point is contrary if outputs have other shapes than the file declares and integer inputs may
    be the cause.
    """

    feeds: Mapping[str, Array]
    dimensions: Mapping[str, int]
    is_contrary: bool = False

    def redrawn(self, seed: int, names: Collection[str]) -> Point:
        """A point with the same sizes and integers, and slightly moved floats."""
        draw = np.random.default_rng(seed)
        moved = {
            name: np.asarray(x + 2e-3 * draw.standard_normal(x.shape).astype(x.dtype), x.dtype)
            for name, x in self.feeds.items()
            if is_float(x) and name in names
        }
        return replace(self, feeds={**self.feeds, **moved})


def find_point(model: onnx.ModelProto, folder: Path, run: Run) -> Point:
    """The first point with finite float outputs in declared shapes, else the best one tried.

    Raises NoPointError with the error of the first try.
    """
    best, best_merit, problem, tries_left = None, -1, "", _MOST_TRIES
    for point in _candidates(model, folder):
        tries_left -= 1
        try:
            answers = run(point.feeds)
        except Exception as error:  # the runtime's exceptions share no base class
            problem, answers = problem or str(error), None
        if answers is not None:
            merit = 2 * _as_declared(model, answers) + _is_finite(answers)
            if merit > best_merit:
                best, best_merit = point, merit
            tries_left = min(tries_left, _MORE_TRIES)
        if best_merit == 3 or tries_left <= 0:
            break
    if best is None:
        raise NoPointError(problem or "an input is no tensor")
    by_data = not all(map(is_float, best.feeds.values()))
    return replace(best, is_contrary=by_data and best_merit < 2)


def _is_finite(answers: Mapping[str, Array]) -> bool:
    return all(np.isfinite(y).all() for y in answers.values() if is_float(y))


def _as_declared(model: onnx.ModelProto, answers: Mapping[str, Array]) -> bool:
    for value in model.graph.output:
        kind, answer = value.type.tensor_type, answers.get(value.name)
        if kind.HasField("shape") and isinstance(answer, np.ndarray):
            dims = [dim.dim_value if dim.HasField("dim_value") else None for dim in kind.shape.dim]
            if len(dims) != answer.ndim:
                return False
            if any(dim not in (None, size) for dim, size in zip(dims, answer.shape, strict=True)):
                return False
    return True


def _candidates(model: onnx.ModelProto, folder: Path) -> Iterator[Point]:
    stored = {tensor.name for tensor in model.graph.initializer}
    fed = [value for value in model.graph.input if value.name not in stored]
    if not all(value.type.HasField("tensor_type") for value in fed):
        return
    yield from _test_data(fed, folder)
    whole = any(np.dtype(_dtype(value)).kind in "iu" for value in fed)
    floats = any(is_float(np.zeros(1, _dtype(value))) for value in fed)
    fills = (_shape_of_an_output(model), *_WHOLE) if whole else _WHOLE[:1]
    if whole and any(node.op_type == "ScatterND" for node in model.graph.node):
        fills = (_coordinates, *fills)
    for dimensions in _dimensions(symbolic_dimensions(model)):
        for fill in fills:
            for low, high in _RANGES[: None if floats else 1]:
                draw = np.random.default_rng(7)
                yield Point(
                    {v.name: _drawn(v, dimensions, fill, low, high, draw) for v in fed}, dimensions
                )


def _test_data(fed: list[onnx.ValueInfoProto], folder: Path) -> Iterator[Point]:
    """The test data next to a file, in the layout of ONNX's backend tests."""
    for data in sorted(folder.glob("test_data_set_*")):
        paths = [data / f"input_{index}.pb" for index in range(len(fed))]
        try:
            arrays = [numpy_helper.to_array(onnx.load_tensor(path)) for path in paths]
        except (OSError, ValueError, TypeError):
            continue
        sizes: dict[str, int] = {}
        for value, array in zip(fed, arrays, strict=True):
            dims = enumerate(value.type.tensor_type.shape.dim)
            sizes |= {
                dim.dim_param or f"{value.name}[{axis}]": array.shape[axis]
                for axis, dim in dims
                if axis < array.ndim and not dim.HasField("dim_value")
            }
        yield Point({v.name: array for v, array in zip(fed, arrays, strict=True)}, sizes)


def _dimensions(names: tuple[str, ...]) -> Iterator[dict[str, int]]:
    if not names:
        yield {}
        return
    for size in _SIZES:
        yield dict.fromkeys(names, size)
    # A batch of one example first, and usual sizes for known names.
    for size in _SIZES[3:]:
        yield {name: size if index else 1 for index, name in enumerate(names)}
    for size in _SIZES:
        yield {name: 3 if re.search(r"chan|\[1\]$", name, re.I) else size for name in names}


def _drawn(
    value: onnx.ValueInfoProto,
    dimensions: Mapping[str, int],
    fill: Fill,
    low: float,
    high: float,
    draw: np.random.Generator,
) -> Array:
    dims = value.type.tensor_type.shape.dim
    shape = tuple(
        dim.dim_value
        if dim.HasField("dim_value")
        else dimensions[dim.dim_param or f"{value.name}[{axis}]"]
        for axis, dim in enumerate(dims)
    )
    dtype = _dtype(value)
    if dtype == np.object_:
        return np.full(shape, "a", object)
    if is_float(np.zeros(1, dtype)):
        return draw.uniform(low, high, shape).astype(dtype)
    return np.asarray(fill(shape, draw)).astype(dtype)


def _dtype(value: onnx.ValueInfoProto) -> np.dtype[np.generic]:
    return helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type or 1)
