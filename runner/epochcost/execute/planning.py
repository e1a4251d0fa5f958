"""The plan of a run here: what the studies ask for, given what this machine is and can do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from epochcost import __version__
from epochcost.errors import CapabilityError, InputError
from epochcost.execute.gpus import on_device
from epochcost.execute.plausibility import require_plausible
from epochcost.execute.room import with_room
from epochcost.execute.runtimes import missing
from epochcost.measure.environment import detect, runtime_name, shown_gpus
from epochcost.measure.load.loadgen import missing_loadgen
from epochcost.measure.pinning import pinnable_cpus, why_not_pinned
from epochcost.measure.session import require_provider
from epochcost.plan.digests import graph_digests
from epochcost.plan.make import Host, Plan, Selection, merge_plans, plan_study
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.study import Provider, Study

PROVIDERS: tuple[Provider, ...] = ("cpu", "cuda")


@dataclass(frozen=True)
class Request:
    """What a user asks for by name; an empty tuple is everything.

    ``as_is``: measure although this machine contradicts the spec of ``hardware``. ``device``: the
    GPU for all studies, None for each study's own. ``vcpus`` and ``batch_size`` take
    the place of theirs.
    """

    studies: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    providers: tuple[Provider, ...] = ()
    hardware: str = "local"
    quick: bool = False
    compliant: bool = False
    as_is: bool = False
    device: int | None = None
    vcpus: tuple[int, ...] = ()
    batch_size: int | Literal["auto"] | None = None


def require_providers(providers: Iterable[Provider]) -> None:
    """Raise CapabilityError where this machine cannot run one that was asked for by name."""
    for provider in providers:
        require_provider(provider)


def plan_here(catalogue: Catalogue, request: Request) -> Plan:
    """The trials that a run on this machine would do; those that it has no memory for are left out.

    Raises InputError for an unknown study, model or machine, for a machine that this one cannot
    be, and for models that no chosen study measures.
    """
    machine = catalogue.machine(request.hardware)
    require_plausible(machine, detect(), as_is=request.as_is)
    studies = on_device(_studies(catalogue, request), request.device)
    host = Host(
        request.hardware,
        runtime_name(),
        __version__,
        _unusable(request.providers or PROVIDERS),
        missing_runtimes=missing(studies),
        no_loadgen=missing_loadgen(),
        cpus=pinnable_cpus(),
        no_pinning=why_not_pinned(),
        gpus=len(shown_gpus()) or None,
    )
    selection = Selection(
        models=frozenset(request.models) or None,
        providers=frozenset(request.providers) or None,
        quick=request.quick,
        compliant=request.compliant,
    )
    graphs = graph_digests(catalogue, _models(studies, request))
    asked = merge_plans(
        plan_study(catalogue, study, host, graphs=graphs, selection=selection) for study in studies
    )
    return with_room(catalogue, asked)


def _studies(catalogue: Catalogue, request: Request) -> tuple[Study, ...]:
    names = request.studies or tuple(sorted(catalogue.studies))
    studies = tuple(catalogue.study(name) for name in names)
    for name in request.models:
        if not any(catalogue.model(name).id in study.models for study in studies):
            raise InputError(
                f"--model {name}: demanded a model of the studies {', '.join(names)}; got one that "
                "none of them measures: name it in a study, or choose another"
            )
    asked: dict[str, Any] = {"vcpus": request.vcpus} if request.vcpus else {}
    if (size := request.batch_size) is not None:
        sizes = size if size == "auto" else (size,)
        asked |= {"training_batch_sizes": sizes, "inference_batch_sizes": sizes}
    return tuple(study.model_copy(update=asked) for study in studies)


def _models(studies: Iterable[Study], request: Request) -> set[str]:
    named = {model for study in studies for model in study.models}
    return named & set(request.models) if request.models else named


def _unusable(providers: Iterable[Provider]) -> Mapping[Provider, str]:
    """Why this machine cannot run a provider, for those that it cannot; others are not tried."""
    reasons: dict[Provider, str] = {}
    for provider in providers:
        try:
            require_provider(provider)
        except CapabilityError as error:
            reasons[provider] = str(error)
    return reasons
