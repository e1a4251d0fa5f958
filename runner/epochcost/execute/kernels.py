"""Check planned trials for nodes without a CUDA kernel; the check needs no GPU."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from pydantic import TypeAdapter

from epochcost.errors import EpochcostError
from epochcost.execute.folders import optional_cache_folder
from epochcost.execute.job_files import cache_names, in_precision
from epochcost.execute.step import step_in_precision
from epochcost.plan.binding import bind_model
from epochcost.plan.trial import Trial
from epochcost.plan.work import Phase
from epochcost.results.kept import LIBRARY, Keep
from epochcost.specs.catalogue import Catalogue
from onnxstep.graphs.cuda_kernels import KernelCheck, check_kernels
from onnxstep.graphs.loading import load_model

_KEPT = Keep("kernels", TypeAdapter(tuple[str, KernelCheck]), (LIBRARY, "."))
# A graph's title, and the outcome of its check, or the error if the graph cannot be built.
Check = tuple[str, KernelCheck | EpochcostError]


def check_trials(catalogue: Catalogue, trials: Iterable[Trial]) -> Iterator[Check]:
    """Check each graph that trials run on CUDA, once for all batch sizes; yields the outcomes."""
    chosen: dict[str, Trial] = {}
    for trial in trials:
        if trial.provider == "cuda":
            title = f"{trial.model} {trial.work.title or trial.mode} {trial.precision}"
            chosen.setdefault(title, trial)
    for title, trial in chosen.items():
        check = partial(_check, catalogue, trial)
        try:
            yield title, _KEPT.value(optional_cache_folder("kernels"), trial.id, check)
        except EpochcostError as error:
            yield title, error


def _check(catalogue: Catalogue, trial: Trial) -> KernelCheck:
    model = catalogue.models[trial.model]
    work = trial.work
    graph = bind_model(load_model(catalogue.graph_path(model)), model, trial.batch_size, work)
    if trial.mode == "training" and model.training is not None:
        return check_kernels(step_in_precision(trial, graph, model, model.training).model)
    cache = cache_names(graph, model) if isinstance(work, Phase) else {}
    return check_kernels(in_precision(trial, graph, cache))
