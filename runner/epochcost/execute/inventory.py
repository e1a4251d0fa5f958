"""The sizes of all models of a catalogue, counted side by side on the machine's cores."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from epochcost.errors import ModelError
from epochcost.execute.sizing import declared_batch_sizes, size_of
from epochcost.graphs.loading import load_model
from epochcost.plan.size import ModelSize
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.model import Model

# Below this many, starting processes takes longer than counting.
_FEW = 4


def sizes(catalogue: Catalogue, models: Iterable[str]) -> Mapping[str, ModelSize | ModelError]:
    """By id, the size of each of these models at its declared batch sizes, or why there is none.

    A model without a graph has no entry.
    """
    chosen = [catalogue.model(name) for name in sorted(models)]
    work = [(model, catalogue.graph_path(model)) for model in chosen if model.graph is not None]
    if len(work) <= _FEW:
        return {model.id: _size(model, path) for model, path in work}
    # The largest graphs first, so that no core ends up alone with one.
    work.sort(key=lambda each: each[1].stat().st_size if each[1].is_file() else 0, reverse=True)
    counted = _in_processes(work)
    return {model.id: counted[model.id] for model in chosen if model.id in counted}


def _in_processes(work: list[tuple[Model, Path]]) -> dict[str, ModelSize | ModelError]:
    # Not by fork: libraries with threads of their own do not survive it.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(len(work), os.cpu_count() or 1), context) as pool:
        found = pool.map(_size, *zip(*work, strict=True))
        return {model.id: size for (model, _), size in zip(work, found, strict=True)}


def _size(model: Model, path: Path) -> ModelSize | ModelError:
    try:
        return size_of(model, load_model(path), declared_batch_sizes(model))
    except ModelError as error:
        return error
