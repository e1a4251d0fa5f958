"""The sizes of models: counted side by side on the machine's cores, and cached for the user.

A size is found again under everything that it follows from: the bytes of the graph, what the spec
says about the work, and all code of this package and
of onnxstep. Counting one is left to ``sizing``.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from epochcost.errors import CapabilityError, EpochcostError
from epochcost.execute.folders import optional_cache_folder
from epochcost.execute.sizing import declared_batch_sizes, size_of
from epochcost.plan.digests import work_sha256
from epochcost.plan.size import Footprint, ModelSize
from epochcost.results.kept import LIBRARY, Keep
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.model import Model
from epochcost.specs.study import Mode, Provider
from onnxstep.graphs.exported import separated
from onnxstep.graphs.loading import load_model

_KEPT = Keep("size", TypeAdapter(tuple[str, ModelSize]), (LIBRARY, "."))


@dataclass(frozen=True)
class SizeQuery:
    """What a size is counted of: a model, its ONNX file, batch sizes by mode and a provider."""

    model: Model
    graph: Path
    wanted: Mapping[Mode, Collection[int]]
    provider: Provider = "cpu"


def footprints(
    catalogue: Catalogue, name: str, mode: Mode, provider: Provider, batch_sizes: Collection[int]
) -> dict[int, Footprint]:
    """By batch size what a model needs; those that cannot be counted are left out."""
    model = catalogue.model(name)
    query = SizeQuery(model, catalogue.graph_path(model), {mode: batch_sizes}, provider)
    try:
        size = cached_size(query)
    except EpochcostError:
        return {}
    found = {batch_size: size.footprint(mode, batch_size) for batch_size in batch_sizes}
    return {batch_size: one for batch_size, one in found.items() if one is not None}


def cached_size(query: SizeQuery) -> ModelSize:
    """The size from the cache, else counted and cached; raises as ``count_size`` does."""
    size = read_cached(query)
    if size is None:
        size = count_size(query)
        write_cached(query, size)
    return size


def count_size(query: SizeQuery) -> ModelSize:
    """The size, counted anew.

    Raises ModelError where the graph cannot be read, and CapabilityError where the memory does not
    suffice to build the step.
    """
    try:
        graph = separated(load_model(query.graph))
        return size_of(query.model, graph, query.wanted, query.provider)
    except (MemoryError, RecursionError) as error:
        raise CapabilityError(
            f"{query.graph}: counting it takes more than this machine has ({error!r})"
        ) from None


def read_cached(query: SizeQuery) -> ModelSize | None:
    """The cached size; None where there is none, or none that can be read."""
    key = _key(query)
    return None if key is None else _KEPT.read(optional_cache_folder("sizes"), key)


def write_cached(query: SizeQuery, size: ModelSize) -> None:
    """Cache a size, where that can be done."""
    _KEPT.write(optional_cache_folder("sizes"), _key(query), size)


def _key(query: SizeQuery) -> object:
    """All that a size follows from but the code; None where the graph cannot be read."""
    try:
        digest = hashlib.sha256(query.graph.read_bytes()).hexdigest()
    except (OSError, ValueError):
        return None
    model = query.model
    works = work_sha256(model, "training"), work_sha256(model, "inference")
    wanted = {mode: sorted(sizes) for mode, sizes in query.wanted.items()}
    return model.id, model.graph, digest, works, wanted, query.provider


# Below so many bytes of graphs, starting processes takes longer than counting.
_FEW_BYTES = 2**15

# A model's size, or why it has none.
SizeOrError = ModelSize | EpochcostError


@dataclass(frozen=True)
class SizeProgress:
    """How far the counting is: so many models of all, this one last."""

    done: int
    total: int
    model: str


def model_sizes(
    catalogue: Catalogue,
    models: Iterable[str],
    on_counted: Callable[[SizeProgress], None] = lambda _: None,
) -> Mapping[str, SizeOrError]:
    """By id, the size of each of these models at its declared batch sizes, or why there is none.

    A model without a graph has no entry.
    """
    chosen = [catalogue.model(name) for name in sorted(set(models))]
    queries = [
        SizeQuery(model, catalogue.graph_path(model), declared_batch_sizes(model))
        for model in chosen
        if model.graph is not None
    ]
    found: dict[str, SizeOrError] = {}
    for query, size in _answers(queries):
        found[query.model.id] = size
        on_counted(SizeProgress(len(found), len(queries), query.model.id))
    return {model.id: found[model.id] for model in chosen if model.id in found}


def _answers(queries: Sequence[SizeQuery]) -> Iterator[tuple[SizeQuery, SizeOrError]]:
    """Those that are cached at once, then the others as they are counted."""
    left: list[SizeQuery] = []
    for query in queries:
        size = read_cached(query)
        if size is None:
            left.append(query)
        else:
            yield query, size
    for query, answer in _counted(left):
        if isinstance(answer, ModelSize):
            write_cached(query, answer)
        yield query, answer


def _counted(queries: Sequence[SizeQuery]) -> Iterator[tuple[SizeQuery, SizeOrError]]:
    # The largest graphs first, so that no core ends up alone with one.
    ordered = sorted(queries, key=_graph_bytes, reverse=True)
    if len(ordered) > 1 and sum(map(_graph_bytes, ordered)) > _FEW_BYTES:
        yield from _in_processes(ordered)
    else:
        yield from ((query, _size(query)) for query in ordered)


def _in_processes(queries: Sequence[SizeQuery]) -> Iterator[tuple[SizeQuery, SizeOrError]]:
    # Not by fork: libraries with threads of their own do not survive it.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(len(queries), os.cpu_count() or 1), context) as pool:
        try:
            asked = {pool.submit(_size, query): query for query in queries}
            for future in as_completed(asked):
                yield asked[future], _result(future)
        except BaseException:  # an interruption waits for what is being counted, and no more
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _result(future: Future[SizeOrError]) -> SizeOrError:
    try:
        return future.result()
    except BrokenProcessPool:
        return CapabilityError(
            "its count was cut off when a process ended before its time: free some memory, "
            "or name it alone with --model"
        )


def _graph_bytes(query: SizeQuery) -> int:
    return query.graph.stat().st_size if query.graph.is_file() else 0


def _size(query: SizeQuery) -> SizeOrError:
    try:
        return count_size(query)
    except EpochcostError as error:
        return error
