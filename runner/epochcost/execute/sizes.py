"""The memory that models need, computed in parallel on all cores and cached for the user."""

from __future__ import annotations

import contextlib
import hashlib
import multiprocessing
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from epochcost.errors import CapabilityError, EpochcostError
from epochcost.execute.folders import optional_cache_folder
from epochcost.execute.sizing import declared_batch_sizes, size_of
from epochcost.measure.pinning import pinnable_cpus
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
    """A request for a model's memory: its ONNX file, batch sizes by mode, and a provider."""

    model: Model
    graph: Path
    batch_sizes: Mapping[Mode, Collection[int]]
    provider: Provider = "cpu"


def footprints(
    catalogue: Catalogue, name: str, mode: Mode, provider: Provider, batch_sizes: Collection[int]
) -> dict[int, Footprint]:
    """A model's memory by batch size; empty if it cannot be computed for one of the sizes."""
    model = catalogue.model(name)
    query = SizeQuery(model, catalogue.graph_path(model), {mode: batch_sizes}, provider)
    try:
        size = cached_size(query)
    except EpochcostError:
        return {}
    return {
        batch_size: footprint
        for batch_size in batch_sizes
        if (footprint := size.footprint(mode, batch_size)) is not None
    }


def cached_size(query: SizeQuery) -> ModelSize:
    """As ``count_size``, but read from the cache, or else computed and stored there."""
    cache, key = optional_cache_folder("sizes"), _query_cache_key(query)
    return _KEPT.value(cache, key, lambda: count_size(query))


def count_size(query: SizeQuery) -> ModelSize:
    """Compute the memory that a model needs.

    Raises ModelError if the graph cannot be read, CapabilityError if this runs out of memory.
    """
    try:
        graph = separated(load_model(query.graph))
        return size_of(query.model, graph, query.batch_sizes, query.provider)
    except (MemoryError, RecursionError) as error:
        raise CapabilityError(
            f"{query.graph}: counting it takes more memory than this machine has ({error!r})"
        ) from None


def read_cached(query: SizeQuery) -> ModelSize | None:
    """The memory that a model needs, from the cache; None if it is missing or cannot be read."""
    return _KEPT.read(optional_cache_folder("sizes"), _query_cache_key(query))


def _query_cache_key(query: SizeQuery) -> object:
    """The values that identify a query in the cache."""
    digest = None  # of a file that cannot be read, and so cannot be counted
    with contextlib.suppress(OSError, ValueError):
        digest = hashlib.sha256(query.graph.read_bytes()).hexdigest()
    model = query.model
    works = work_sha256(model, "training"), work_sha256(model, "inference")
    batch_sizes = {mode: sorted(sizes) for mode, sizes in query.batch_sizes.items()}
    return model.id, model.graph, digest, works, batch_sizes, query.provider


# If all graphs together are smaller, starting processes takes longer than counting.
_FEW_BYTES = 2**15

SizeOrError = ModelSize | EpochcostError


def model_sizes(catalogue: Catalogue, models: Iterable[str]) -> Mapping[str, SizeOrError]:
    """Each model's memory at its declared batch sizes, or the error; no entry without a graph."""
    queries = [
        SizeQuery(model, catalogue.graph_path(model), declared_batch_sizes(model))
        for model in map(catalogue.model, set(models))
        if model.graph is not None
    ]
    cached = {query.model.id: read_cached(query) for query in queries}
    sizes: dict[str, SizeOrError] = {
        name: size for name, size in cached.items() if size is not None
    }
    # The largest graphs come first, so that all cores end at about the same time.
    uncached = sorted((q for q in queries if q.model.id not in sizes), key=_graph_bytes)[::-1]
    in_processes = len(uncached) > 1 and sum(map(_graph_bytes, uncached)) > _FEW_BYTES
    counted = _in_processes(uncached) if in_processes else map(_size, uncached)
    sizes |= zip((query.model.id for query in uncached), counted, strict=True)
    return dict(sorted(sizes.items()))


def _in_processes(queries: Sequence[SizeQuery]) -> list[SizeOrError]:
    # Not by fork, which breaks libraries that have started threads.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(len(queries), pinnable_cpus()), context) as pool:
        try:
            futures = [pool.submit(_size, query) for query in queries]
            return [_result(future) for future in futures]
        except BaseException:  # after an interruption only started counts are awaited
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _result(future: Future[SizeOrError]) -> SizeOrError:
    try:
        return future.result()
    except BrokenProcessPool:
        return CapabilityError(
            "the process that counted this model ended early: free some memory, or choose this "
            "model alone with --model"
        )


def _graph_bytes(query: SizeQuery) -> int:
    return query.graph.stat().st_size if query.graph.is_file() else 0


def _size(query: SizeQuery) -> SizeOrError:
    try:
        return cached_size(query)
    except EpochcostError as error:
        return error
