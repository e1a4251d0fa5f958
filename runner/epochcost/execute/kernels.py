"""Check planned trials for nodes without a CUDA kernel; this needs no GPU."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from epochcost.errors import EpochcostError
from epochcost.execute.job_files import cache_names, in_precision
from epochcost.execute.step import step_in_precision
from epochcost.plan.binding import bind_model
from epochcost.plan.trial import Trial
from epochcost.plan.work import Phase
from epochcost.specs.catalogue import Catalogue
from onnxstep.graphs.cuda_kernels import KernelCheck, check_kernels
from onnxstep.graphs.loading import load_model


@dataclass(frozen=True, slots=True)
class CheckedGraph:
    """The check of a trial's graph, or the error that prevents building the graph."""

    title: str
    check: KernelCheck | EpochcostError

    @property
    def passes(self) -> bool:
        """Whether each node has a kernel."""
        return isinstance(self.check, KernelCheck) and not self.check.on_host

    def __str__(self) -> str:
        return f"{self.title}: {self.check}"


def check_trials(catalogue: Catalogue, trials: Iterable[Trial]) -> Iterator[CheckedGraph]:
    """Yield the check of each graph that trials run on CUDA.

    The trials of a model, mode or phase, and precision share a graph, except for its batch size.
    """
    chosen: dict[str, Trial] = {}
    for trial in trials:
        if trial.provider == "cuda":
            title = f"{trial.model} {trial.work.title or trial.mode} {trial.precision}"
            chosen.setdefault(title, trial)
    for title, trial in chosen.items():
        try:
            yield CheckedGraph(title, _check(catalogue, trial))
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
