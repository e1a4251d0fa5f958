"""Count a model's operations for one example, and estimate the memory that a workload needs.

Counting needs the package onnx, but no runtime. The exact memory of a training step needs a graph
with the backward pass; `epochcost plan --verbose` shows it.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from epochcost.graphs.profile import Arithmetic, Profile
from epochcost.predict.design import Precision
from epochcost.results.kept import LIBRARY, Keep
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.model import Model
from epochcost.specs.study import Mode
from epochcost.specs.training import Optimizer

BYTES_PER_NUMBER = 4
# The optimizers' states, of the parameter's size each (formulas: onnxstep.optimizers).
_STATES = {"sgd": 0, "rmsprop": 1, "adagrad": 1, "adadelta": 2, "adam": 2, "adamw": 2}


_KEPT = Keep(
    "arithmetic",
    TypeAdapter(tuple[str, Arithmetic | None]),
    (f"{LIBRARY}/graphs", "graphs", "analysis/arithmetic.py"),
)


def arithmetic_of_model(
    catalogue: Catalogue, model: Model, cache: Path | None = None
) -> Arithmetic | None:
    """Count a model's operations and parameters; None without a graph that can be counted."""
    graph = Graph.of(catalogue.graph_path(model), model.dimensions) if model.graph else None
    return None if graph is None else arithmetic_of_graph(graph, cache)


@dataclass(frozen=True)
class Graph:
    """A graph's file, SHA-256 (``digest``) and sizes of dimensions; equality ignores the path."""

    digest: str
    dimensions: tuple[tuple[str, int], ...]
    path: Path = field(compare=False, repr=False)

    @classmethod
    def of(cls, path: Path, dimensions: Mapping[str, int]) -> Graph | None:
        """Read a file and compute its digest; None if the file cannot be read."""
        try:
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
        except OSError:
            return None
        return cls(digest, tuple(sorted(dimensions.items())), path)


# Counts that come with the files of a folder: an installed package counts nothing.
COUNTS = "counts.json"
COUNTS_FORM = TypeAdapter(tuple[tuple[str, tuple[tuple[str, int], ...], Arithmetic], ...])
_memory: dict[Graph, Arithmetic | None] = {}


def arithmetic_of_graph(graph: Graph, cache: Path | None = None) -> Arithmetic | None:
    """Count the operations of a graph; None if they cannot be counted.

    Known counts come from ``counts.json`` beside the graph or ``cache``, which stores new ones.
    """
    if graph not in _memory:
        known = _read_stored_counts(graph.path.parent).get(graph)
        _memory[graph] = known or _KEPT.value(cache, graph, lambda: _count(graph))
    return _memory[graph]


@functools.cache
def _read_stored_counts(folder: Path) -> Mapping[Graph, Arithmetic]:
    with contextlib.suppress(OSError, ValidationError):
        counts = COUNTS_FORM.validate_json((folder / COUNTS).read_bytes())
        return {Graph(digest, sizes, folder): counted for digest, sizes, counted in counts}
    return {}


def _count(graph: Graph) -> Arithmetic | None:
    # Imports onnx, which is not needed if all counts are cached.
    from epochcost.graphs.profiling import arithmetic_of_file  # noqa: PLC0415

    return arithmetic_of_file(graph.path, dict(graph.dimensions))


def is_whole_pass(model: Model, mode: Mode) -> bool:
    """Whether a training step computes all gradients (no frozen parameters); True for inference."""
    return mode == "inference" or not (model.training and model.training.freeze)


def optimizer_states(optimizer: Optimizer) -> int:
    """Number of values that an optimizer stores for each parameter."""
    momentum = bool(getattr(optimizer, "momentum", 0))
    return _STATES[optimizer.name] + momentum


def needed_bytes(
    model: Model, profile: Profile, mode: Mode, count: int, precision: Precision, batch: int
) -> float:
    """Bytes that all devices of a machine together need for a workload.

    Training stores operands and results of matrix products and convolutions, parameters, gradients
    and optimizer states. For inference, each of ``count`` devices stores the parameters.
    """
    parameters = float(profile.parameters) * BYTES_PER_NUMBER
    if mode == "inference" or model.training is None:
        return parameters * count
    # By this sum, the largest published batches of MPT-350m to MPT-1b (llm-foundry.csv) need 93 to
    # 102 % of the memory of A100 with 40 GB.
    number_bytes = BYTES_PER_NUMBER / 2 if precision == "mixed" else BYTES_PER_NUMBER
    stored = profile.moved * batch * number_bytes
    return parameters * (2 + optimizer_states(model.training.optimizer)) + stored
