"""The memory that models need, cached for the user."""

from __future__ import annotations

from pathlib import Path

from pydantic import TypeAdapter

from epochcost.errors import CapabilityError
from epochcost.execute.folders import optional_cache_folder
from epochcost.execute.sizing import BatchSizes, ModelSize, size_of
from epochcost.plan.digests import graph_sha256, work_sha256
from epochcost.results.kept import LIBRARY, Keep
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.model import Model
from epochcost.specs.study import Provider
from onnxstep.graphs.exported import separated
from onnxstep.graphs.loading import load_model

_KEPT = Keep("size", TypeAdapter(tuple[str, ModelSize]), (LIBRARY, "."))


def cached_size(
    catalogue: Catalogue, model: Model, batch_sizes: BatchSizes, provider: Provider = "cpu"
) -> ModelSize:
    """The memory that a model needs, from the cache, or else computed and stored there.

    Raises ModelError if the graph cannot be read, CapabilityError if this runs out of memory.
    """
    graph = catalogue.graph_path(model)
    ordered = {mode: sorted(sizes) for mode, sizes in batch_sizes.items()}
    works = work_sha256(model, "training"), work_sha256(model, "inference")
    key = model.id, model.graph, graph_sha256(catalogue, model.id), works, ordered, provider
    return _KEPT.value(
        optional_cache_folder("sizes"), key, lambda: count_size(model, graph, batch_sizes, provider)
    )


def count_size(
    model: Model, graph: Path, batch_sizes: BatchSizes, provider: Provider = "cpu"
) -> ModelSize:
    """Compute the memory that a model needs, as ``cached_size`` without the cache."""
    try:
        return size_of(model, separated(load_model(graph)), batch_sizes, provider)
    except (MemoryError, RecursionError) as error:
        raise CapabilityError(
            f"{graph}: counting it takes more memory than this machine has ({error!r})"
        ) from None
