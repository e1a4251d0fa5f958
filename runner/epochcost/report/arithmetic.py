"""What a model computes for one example, counted from its graph as the site is built.

Needs onnx and no runtime. What a training step is exactly and what it holds in memory takes a
differentiated graph: `epochcost plan --verbose` shows it.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from epochcost.errors import ModelError
from epochcost.graphs.binding import bind_dimensions, symbolic_dimensions
from epochcost.graphs.counting import flops
from epochcost.graphs.loading import load_model
from epochcost.graphs.parameters import data_inputs, parameter_count


@dataclass(frozen=True)
class Arithmetic:
    """How many numbers are trained, and the operations of one example's forward pass."""

    parameters: int
    forward_flops: float


def arithmetic_of(path: Path, dimensions: Mapping[str, int]) -> Arithmetic | None:
    """Count a graph; None where it is not there or cannot be counted.

    ``dimensions`` sizes the graph's dimensions other than the batch.
    """
    try:
        stamp = path.stat().st_mtime_ns
    except OSError:
        return None
    return _counted(path, stamp, tuple(sorted(dimensions.items())))


@functools.lru_cache(maxsize=256)
def _counted(path: Path, _stamp: int, dimensions: tuple[tuple[str, int], ...]) -> Arithmetic | None:
    """Kept between the builds of one `serve`, as long as the file is the same."""
    try:
        graph = load_model(path)
        batch = dict.fromkeys(symbolic_dimensions(graph), 1)
        bound = bind_dimensions(graph, batch | dict(dimensions))
        examples = next((data.shape[0] for data in data_inputs(bound) if data.shape), 1)
        return Arithmetic(parameter_count(graph), flops(bound) / int(examples))
    except ModelError:
        return None
