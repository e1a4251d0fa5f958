"""From studies to ordered trials, and what is left out and why.

A study asks for every combination of its models, modes, providers, batch sizes and variants. Pure:
the digests of the files and the abilities of the machine are passed in.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal

from epochcost.plan.digests import work_sha256
from epochcost.plan.sweep import Sweep
from epochcost.plan.trial import Trial
from epochcost.plan.variant import (
    Variant,
    session_settings,
    unmet_reason,
    unsupported_reason,
    variants,
)
from epochcost.plan.work import STEPS, Load, Phase, Requests, Work, planned_work
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.model import Model
from epochcost.specs.study import (
    AT_HAND,
    MOST_BATCH,
    AskedBatchSizes,
    Mode,
    Provider,
    Sampling,
    Study,
)
from epochcost.units import memory

# A quick run answers "does it work, and roughly how fast": seconds per trial, a wider interval.
QUICK_RELATIVE_HALF_WIDTH = Decimal("0.05")
QUICK_MINIMUM_SAMPLES = 10
QUICK_BUDGET_SECONDS = Decimal(3)
_ENGINE_PRECISIONS = ("fp32", "int8", "int4")
_CHEAPER_FIRST = {"inference": 0, "training": 1, "cpu": 0, "cuda": 1}


@dataclass(frozen=True)
class HostCapabilities:
    """The machine that would run the trials: its spec's id, its software, what it cannot do.

    ``runtime`` is the installed one; ``missing_runtimes`` maps those of the studies that are not
    there to the reason, ``no_cuda`` a runtime to that why this machine cannot run CUDA under it;
    ``no_loadgen`` is why it cannot run LoadGen, None where it can; ``cpus`` is how many CPUs a
    trial may use, None where that is not known; ``no_pinning`` is why it cannot pin a trial to some
    of them; ``gpus`` is how many CUDA shows, None where that is not known.
    """

    hardware: str
    runtime: str
    producer: str
    no_cuda: Mapping[str, str]
    missing_runtimes: Mapping[str, str] = field(default_factory=dict)
    no_loadgen: str | None = None
    cpus: int | None = None
    no_pinning: str | None = None
    gpus: int | None = None


@dataclass(frozen=True)
class StudySelection:
    """What was asked for by name; None is everything, and of ``rounds`` what the study says.

    ``quick`` trades precision for time.
    """

    models: frozenset[str] | None = None
    providers: frozenset[Provider] | None = None
    quick: bool = False
    rounds: int | None = None


@dataclass(frozen=True, order=True)
class LeftOut:
    """Work that a study names and this plan does not do."""

    what: str
    reason: str


@dataclass(frozen=True)
class Plan:
    """Trials and sweeps, cheapest first, and what is left out.

    ``rounds`` by trial's id where above one; a sweep knows its own.
    """

    trials: tuple[Trial, ...]
    left_out: tuple[LeftOut, ...]
    rounds: Mapping[str, int] = field(default_factory=dict)
    sweeps: tuple[Sweep, ...] = ()


def plan_study(
    catalogue: Catalogue,
    study: Study,
    host: HostCapabilities,
    *,
    graphs: Mapping[str, str],
    selection: StudySelection = StudySelection(),
) -> Plan:
    """The trials of one study on one machine.

    ``graphs`` holds the SHA-256 of the ONNX file of every selected model of the study that has one.
    """
    if not {host.hardware, AT_HAND} & {*study.hardware}:
        listed = ", ".join(study.hardware)
        reason = f"it is for the hardware {listed}; this run is for {host.hardware}"
        return Plan((), (LeftOut(f"study {study.id}", reason),))
    drafts = [
        (work, _trial_or_reason(study, host, work, graphs, selection.quick))
        for work in _combinations(catalogue, study, host, selection)
    ]
    rounds = selection.rounds or (1 if selection.quick else study.rounds)
    trials = tuple(draft for work, draft in drafts if isinstance(draft, Trial) and not work.swept)
    sweeps = tuple(
        _sweep(work, draft, rounds)
        for work, draft in drafts
        if isinstance(draft, Trial) and work.swept
    )
    left_out = tuple(draft for _, draft in drafts if isinstance(draft, LeftOut))
    asked = {trial.id: rounds for trial in trials if rounds > 1}
    return merge_plans([Plan(trials, left_out, asked, sweeps)])


def merge_plans(plans: Iterable[Plan]) -> Plan:
    """One plan of many: work that several studies name is done once; cheapest first.

    It takes as many rounds as the study that asks for the most.
    """
    every = tuple(plans)
    trials = {trial.id: trial for plan in every for trial in plan.trials}
    left_out = dict.fromkeys(left for plan in every for left in plan.left_out)
    rounds: dict[str, int] = {}
    for asked in (plan.rounds for plan in every):
        rounds |= {key: max(count, rounds.get(key, 1)) for key, count in asked.items()}
    return Plan(
        tuple(sorted(trials.values(), key=_cost_rank)), tuple(left_out), rounds, _merged(every)
    )


def _merged(plans: Iterable[Plan]) -> tuple[Sweep, ...]:
    """Of several sweeps of the same work the one that begins lowest, in the most rounds."""
    found: dict[str, Sweep] = {}
    for sweep in (sweep for plan in plans for sweep in plan.sweeps):
        known = found.setdefault(sweep.id, sweep)
        lowest = min(known, sweep, key=lambda one: one.trial.batch_size)
        found[sweep.id] = replace(lowest, rounds=max(known.rounds, sweep.rounds))
    return tuple(sorted(found.values(), key=lambda sweep: _cost_rank(sweep.trial)))


def leave_out(plan: Plan, reason_of: Callable[[Trial], LeftOut | None]) -> Plan:
    """The plan without the trials, and the sweeps from trials, that have a reason."""
    every = (*plan.trials, *(sweep.trial for sweep in plan.sweeps))
    reasons = {trial.id: reason for trial in every if (reason := reason_of(trial))}
    return replace(
        plan,
        trials=tuple(trial for trial in plan.trials if trial.id not in reasons),
        sweeps=tuple(sweep for sweep in plan.sweeps if sweep.trial.id not in reasons),
        left_out=tuple(dict.fromkeys((*plan.left_out, *reasons.values()))),
    )


def leave_out_oversized(
    plan: Plan, needed_bytes: Mapping[str, int], room_bytes: Mapping[Provider, int]
) -> Plan:
    """The plan without the trials that need more memory than the machine has.

    ``needed_bytes`` is by trial's id; a trial without an entry stays, as do those of a provider
    whose memory is not known.
    """

    def reason(trial: Trial) -> LeftOut | None:
        needed, room = needed_bytes.get(trial.id, 0), room_bytes.get(trial.provider)
        if room is None or needed <= room:
            return None
        owner = "this machine" if trial.provider == "cpu" else "its GPU"
        return LeftOut(trial.title, f"needs about {memory(needed)}; {owner} has {memory(room)}")

    return leave_out(plan, reason)


def _cost_rank(trial: Trial) -> tuple[int, int, int, str, str]:
    return (
        _CHEAPER_FIRST[trial.mode],
        _CHEAPER_FIRST[trial.provider],
        trial.batch_size,
        trial.model,
        trial.id,
    )


@dataclass(frozen=True)
class _Combination:
    model: Model
    mode: Mode
    provider: Provider
    variant: Variant
    batch_size: int | None
    work: Work = STEPS
    swept: bool = False

    @property
    def title(self) -> str:
        batch = "" if self.batch_size is None else f" batch {self.batch_size}"
        plain_title = f"{self.model.id} {self.work.title or self.mode} {self.provider}{batch}"
        return f"{plain_title}{self.variant.title and ', '}{self.variant.title}"


def _combinations(
    catalogue: Catalogue, study: Study, host: HostCapabilities, selection: StudySelection
) -> Iterator[_Combination]:
    names = [n for n in study.models if selection.models is None or n in selection.models]
    providers = [
        p for p in study.providers if selection.providers is None or p in selection.providers
    ]
    for name, mode, provider in itertools.product(names, study.modes, providers):
        model = catalogue.models[name]
        swept = _asked(study, mode) == "auto"
        for variant in variants(study, provider, host.cpus):
            for batch_size in _batch_sizes(study, model, mode):
                yield _Combination(model, mode, provider, variant, batch_size, swept=swept)
            for work, batch_size in planned_work(study, model, mode):
                yield _Combination(model, mode, provider, variant, batch_size, work)


def _batch_sizes(study: Study, model: Model, mode: Mode) -> tuple[int | None, ...]:
    """The study's sizes, else the model's; a lone None where the model does not know the mode.

    None at all for a decoder, which is timed by its phases, or if inference is asked for under
    LoadGen only; of a sweep the smallest.
    """
    if model.decoder is not None and mode == "inference":
        return ()
    declared = model.training if mode == "training" else model.inference
    asked = _asked(study, mode)
    if declared is not None and mode == "inference" and "batch" not in study.scenarios:
        return ()
    if declared is None:
        return (None,)
    return (min(declared.batch_sizes),) if asked == "auto" else asked or declared.batch_sizes


def _asked(study: Study, mode: Mode) -> AskedBatchSizes | None:
    return study.training_batch_sizes if mode == "training" else study.inference_batch_sizes


def _sweep(work: _Combination, smallest: Trial, rounds: int) -> Sweep:
    """No batch is larger than an epoch, and none larger than a result may name."""
    training = work.model.training if work.mode == "training" else None
    if training is None or training.examples_per_epoch > MOST_BATCH:
        return Sweep(smallest, MOST_BATCH, "the largest batch that is ever tried", rounds)
    return Sweep(smallest, training.examples_per_epoch, "all examples of an epoch", rounds)


def _trial_or_reason(
    study: Study, host: HostCapabilities, work: _Combination, graphs: Mapping[str, str], quick: bool
) -> Trial | LeftOut:
    if work.model.graph is None:
        return LeftOut(work.model.id, "the model has no graph: it is priced from its FLOPs")
    if work.batch_size is None:
        return LeftOut(work.title, f"the model's spec has no table [{work.mode}]")
    runtime = _runtime(host, work)
    if work.provider == "cuda" and runtime in host.no_cuda:
        return LeftOut(f"{work.model.id} {work.mode} {work.provider}", host.no_cuda[runtime])
    for reason in filter(None, _obstacles(study, host, work, work.batch_size)):
        return LeftOut(work.title, reason)
    sampling = _quick(study.sampling) if quick else study.sampling
    variant = work.variant
    int8 = variant.precision == "int8"
    return Trial(
        model=work.model.id,
        mode=work.mode,
        provider=work.provider,
        precision=variant.precision,
        quantization=study.quantization if int8 and not work.work.decodes else None,
        batch_size=work.batch_size,
        vcpus=variant.vcpus,
        session=session_settings(study, variant, work.provider),
        seed=study.seed,
        runtime=runtime,
        other_runtime=variant.runtime not in (None, host.runtime),
        producer=host.producer,
        stored_weights=work.mode == "inference",
        graph_sha256=graphs[work.model.id],
        spec_sha256=work_sha256(work.model, work.mode),
        work=work.work,
        relative_half_width=sampling.relative_half_width,
        minimum_samples=sampling.minimum_samples,
        budget_seconds=sampling.budget_seconds,
    )


def _obstacles(
    study: Study, host: HostCapabilities, work: _Combination, batch_size: int
) -> Iterator[str | None]:
    """Reasons why this machine does not do the work, the most general first; None is no reason."""
    training = work.model.training if work.mode == "training" else None
    if training is not None and batch_size > training.examples_per_epoch:
        yield "the batch is larger than an epoch has examples"
    yield unsupported_reason(work.variant, work.mode, work.provider, work.work)
    yield from _decoding_obstacles(work)
    yield host.missing_runtimes.get(_runtime(host, work))
    vcpus = work.variant.vcpus
    if vcpus is not None:
        yield host.no_pinning
        if host.cpus is not None and vcpus > host.cpus:
            yield f"needs {vcpus} CPUs; this process may use {host.cpus}"
    if work.work.scenario != "batch":
        yield host.no_loadgen
    kind = work.work
    if isinstance(kind, Load) and (kind.scenario, kind.bound_seconds) == ("server", None):
        yield (
            "no latency bound is declared: write server_latency_ms in the model's table "
            "[inference] or the study's table [serving]"
        )
    yield unmet_reason(study, work.provider, work.work, host.gpus)


def _decoding_obstacles(work: _Combination) -> Iterator[str]:
    decoder, kind = work.model.decoder, work.work
    if isinstance(kind, Requests) and work.variant.precision not in _ENGINE_PRECISIONS:
        yield f"requests to an engine are answered in {', '.join(_ENGINE_PRECISIONS)}"
    if decoder and isinstance(kind, Phase | Requests) and kind.length > decoder.context:
        yield f"{kind.length} tokens are more than its context of {decoder.context}"


def _runtime(host: HostCapabilities, work: _Combination) -> str:
    """The package and version that executes the work."""
    if isinstance(work.work, Requests):
        return work.work.engine
    return work.variant.runtime or host.runtime


def _quick(sampling: Sampling) -> Sampling:
    """The same sampling, or a cheaper one where it asks for more than a quick run gives."""
    return Sampling(
        relative_half_width=max(sampling.relative_half_width, QUICK_RELATIVE_HALF_WIDTH),
        minimum_samples=min(sampling.minimum_samples, QUICK_MINIMUM_SAMPLES),
        budget_seconds=min(sampling.budget_seconds, QUICK_BUDGET_SECONDS),
    )
