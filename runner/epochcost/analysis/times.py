"""Find and cache the times of the workloads in question: measured, published or else predicted."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from pathlib import Path

from pydantic import TypeAdapter

from epochcost.analysis.inputs import RATIOS_FILE, Inputs, read_inputs
from epochcost.analysis.observations import observe
from epochcost.analysis.predicted import Times, missing_from, predict_times
from epochcost.predict.design import Precision
from epochcost.results.kept import LIBRARY, Keep
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.loader import FOLDER
from epochcost.specs.target import PINNED_RUNTIME

_KEPT = Keep(
    "times",
    TypeAdapter(tuple[str, Times]),
    (
        "analysis", "cost", "graphs", "plan", "predict", "results", "specs",
        f"{LIBRARY}/graphs",
    ),
)  # fmt: skip


def times_of(
    inputs: Inputs, workloads: Collection[str], precision: Precision | None = None
) -> Times:
    """Find times of ``workloads`` (ids) in ``precision``.

    If ``precision`` is None, measured and published times count in any precision, and predictions
    use each machine's usual one. Raises InputError for a table of rates that cannot be read.
    """
    timed = [
        work for work in observe(inputs, workloads=workloads) if precision in (None, work.precision)
    ]
    models = inputs.catalogue.models
    demanded = [models[name] for name in workloads if name in models]
    predicted = predict_times(inputs, demanded, precision)
    machines = {observed.machine.hardware for observed in timed}
    return Times(
        (*timed, *missing_from(timed, predicted.observations)),
        tuple(no_time for no_time in predicted.without if no_time.id not in machines),
        inputs.problems,
    )


def cached_times(
    catalogue: Catalogue,
    results: Path,
    docs: Path,
    cache: Path | None,
    workload: str,
    precision: Precision | None,
) -> Times:
    """Times of a workload, read from ``cache`` unless a spec, a result or the code has changed.

    Prices do not matter. Raises InputError for an unknown workload or unreadable published rates.
    """
    if workload not in catalogue.published:
        catalogue.model(workload)

    def compute() -> Times:
        inputs = read_inputs(catalogue, [results], docs, cache)
        return times_of(inputs, [workload], precision)

    content = None if cache is None else _content_of_files(catalogue, results, docs)
    if content is None:
        return compute()
    return _KEPT.value(cache, (content, PINNED_RUNTIME, workload, precision), compute)


def _content_of_files(catalogue: Catalogue, results: Path, docs: Path) -> str | None:
    """A digest of all files from which times are computed; None if one cannot be read."""
    folders = [each for each in (catalogue.root / FOLDER).iterdir() if each.name != "prices"]
    paths = [path for folder in (*folders, results) for path in folder.rglob("*")]
    graphs = [catalogue.graph_path(model) for model in catalogue.models.values() if model.graph]
    digest = hashlib.sha256()
    try:
        for path in filter(Path.is_file, sorted((*paths, *graphs, docs / RATIOS_FILE))):
            with path.open("rb") as file:
                digest.update(f"{path}\0".encode() + hashlib.file_digest(file, "sha256").digest())
    except OSError:
        return None
    return digest.hexdigest()
