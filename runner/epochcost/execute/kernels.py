"""Check planned trials for nodes without a CUDA kernel; the check needs no GPU."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class CheckedGraph:
    """The outcome of the check of a trial's graph, or the error if the graph cannot be built."""

    title: str
    check: KernelCheck | EpochcostError

    @property
    def passes(self) -> bool:
        """Whether each node of the graph has a CUDA kernel."""
        return isinstance(self.check, KernelCheck) and not self.check.on_host

    def __str__(self) -> str:
        return f"{self.title}: {self.check}"


def check_trials(catalogue: Catalogue, trials: Iterable[Trial]) -> Iterator[CheckedGraph]:
    """Check each graph that trials run on CUDA, once for all batch sizes, and yield the outcome."""
    chosen: dict[str, Trial] = {}
    for trial in trials:
        if trial.provider == "cuda":
            title = f"{trial.model} {trial.work.title or trial.mode} {trial.precision}"
            chosen.setdefault(title, trial)
    for title, trial in chosen.items():
        try:
            check = partial(_check, catalogue, trial)
            yield CheckedGraph(
                title, _KEPT.value(optional_cache_folder("kernels"), trial.id, check)
            )
        except EpochcostError as error:
            yield CheckedGraph(title, error)


def _check(catalogue: Catalogue, trial: Trial) -> KernelCheck:
    model = catalogue.models[trial.model]
    work = trial.work
    graph = bind_model(load_model(catalogue.graph_path(model)), model, trial.batch_size, work)
    if trial.mode == "training" and model.training is not None:
        return check_kernels(step_in_precision(trial, graph, model, model.training).model)
    cache = cache_names(graph, model) if isinstance(work, Phase) else {}
    return check_kernels(in_precision(trial, graph, cache))
