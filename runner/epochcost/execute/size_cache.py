"""Sizes that were counted before, kept in the user's cache folder; it may be deleted at any time.

A size is found again under everything that it follows from: the bytes of the graph, what the spec
says about the work, and the code that counts. Nothing here fails: a folder that cannot be read or
written only means that sizes are counted again.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
from pydantic import TypeAdapter, ValidationError

import epochcost
from epochcost.errors import CapabilityError
from epochcost.execute.folders import cache_folder
from epochcost.execute.sizing import size_of
from epochcost.graphs.loading import load_model
from epochcost.plan.digests import work_sha256
from epochcost.plan.size import ModelSize
from epochcost.results.files import write_atomically
from epochcost.specs.model import Model
from epochcost.specs.study import Mode, Provider

# A size takes some kilobytes; beyond so many the oldest half is forgotten.
_MOST_KEPT = 2000
_SIZES = TypeAdapter(ModelSize)


@dataclass(frozen=True)
class Question:
    """What a size is asked of: a model, its ONNX file, batch sizes by mode and a provider."""

    model: Model
    graph: Path
    wanted: Mapping[Mode, Collection[int]]
    provider: Provider = "cpu"


def size_once(question: Question) -> ModelSize:
    """The size as it is kept, else counted and kept from now on; raises as ``count`` does."""
    size = recalled(question)
    if size is None:
        size = count(question)
        keep(question, size)
    return size


def count(question: Question) -> ModelSize:
    """The size, counted anew.

    Raises ModelError where the graph cannot be read, and CapabilityError where the memory does not
    suffice to build the step.
    """
    try:
        graph = load_model(question.graph)
        return size_of(question.model, graph, question.wanted, question.provider)
    except (MemoryError, RecursionError) as error:
        raise CapabilityError(
            f"{question.graph}: counting it takes more than this machine has ({error!r})"
        ) from None


def recalled(question: Question) -> ModelSize | None:
    """The size that is kept; None where there is none, or none that can be read."""
    path = _path(question)
    if path is None:
        return None
    try:
        return _SIZES.validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None


def keep(question: Question, size: ModelSize) -> None:
    """Keep a size for the next time, where that can be done."""
    path = _path(question)
    if path is None:
        return
    with contextlib.suppress(OSError, CapabilityError):
        path.parent.mkdir(parents=True, exist_ok=True)
        _forget_oldest(path.parent)
        write_atomically(path, _SIZES.dump_json(size))


def _forget_oldest(folder: Path) -> None:
    kept = list(folder.glob("*.json"))
    if len(kept) > _MOST_KEPT:
        for path in sorted(kept, key=lambda each: each.stat().st_mtime_ns)[: _MOST_KEPT // 2]:
            path.unlink(missing_ok=True)


def _path(question: Question) -> Path | None:
    """Where the size of a question is kept; None where no folder or file says."""
    try:
        return cache_folder("sizes") / f"{_identity(question)}.json"
    except (OSError, RuntimeError, ValueError):  # no home, or a graph that cannot be read
        return None


def _identity(question: Question) -> str:
    model = question.model
    parts: list[Any] = [
        model.id,
        model.graph,
        hashlib.sha256(question.graph.read_bytes()).hexdigest(),
        {mode: work_sha256(model, mode) for mode in ("training", "inference")},
        {mode: sorted(sizes) for mode, sizes in question.wanted.items()},
        question.provider,
        _code(),
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


@functools.cache
def _code() -> str:
    """The version and the state of its files, which change between versions while one works."""
    root = Path(epochcost.__file__).parent
    stats = ((path, path.stat()) for path in sorted(root.rglob("*.py")))
    files = [(path.name, stat.st_size, stat.st_mtime_ns) for path, stat in stats]
    return repr((epochcost.__version__, onnx.__version__, files))
