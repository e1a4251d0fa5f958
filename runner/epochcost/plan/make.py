"""Make the plan of a study: its trials in order, and the omitted work, each with the reason.

The functions are pure: digests of files and abilities of the machine are arguments.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Literal

from epochcost.errors import InputError
from epochcost.plan.digests import work_sha256
from epochcost.plan.sweep import Sweep
from epochcost.plan.trial import Trial
from epochcost.plan.variant import pinned_cpus, session_settings, unsupported_reason
from epochcost.plan.work import STEPS, Load, Phase, Requests, planned_work
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.model import Model
from epochcost.specs.study import AT_HAND, MOST_BATCH, AskedBatchSizes, Mode, Provider, Study
from epochcost.statistics import group_by
from epochcost.units import memory

# A quick run shows whether all trials work, and about how long a step takes: it spends seconds on
# a trial and accepts a wider interval.
QUICK_RELATIVE_HALF_WIDTH = Decimal("0.05")
QUICK_MINIMUM_SAMPLES = 10
QUICK_BUDGET_SECONDS = Decimal(3)
_ENGINE_PRECISIONS = ("fp32", "int4")
_CHEAPER_FIRST = {"inference": 0, "training": 1, "cpu": 0, "cuda": 1}


@dataclass(frozen=True)
class HostCapabilities:
    """What the machine that would run the trials can do: its software, CPUs and GPUs.

    ``hardware`` is the id of the machine's spec. ``runtime`` is ONNX Runtime's package, such as
    "onnxruntime==1.31.1", ``producer`` epochcost's version. ``cpus`` and ``gpus`` are None if
    unknown. ``missing_engines`` maps each missing serving engine to a message. A field ``no_…`` is
    the reason why CUDA, LoadGen or pinning to CPUs is unavailable, else None.
    """

    hardware: str
    runtime: str
    producer: str
    no_cuda: str | None = None
    missing_engines: Mapping[str, str] = field(default_factory=dict)
    no_loadgen: str | None = None
    cpus: int | None = None
    no_pinning: str | None = None
    gpus: int | None = None


@dataclass(frozen=True)
class RunRequest:
    """A user's selection of trials for a run, and changes to the settings of studies.

    ``studies``, ``models`` and ``providers`` select by name, ``trials`` by the ids of trials and
    sweeps; an empty field selects everything. ``vcpus``, ``batch_size``, ``rounds`` and ``device``,
    a GPU's index, replace the values of the studies, unless empty or None. If ``quick``, each trial
    takes only seconds and is less precise. ``as_is`` allows a machine that contradicts its spec.
    """

    studies: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    providers: tuple[Provider, ...] = ()
    hardware: str = "local"
    quick: bool = False
    as_is: bool = False
    device: int | None = None
    vcpus: tuple[int, ...] = ()
    batch_size: int | Literal["auto"] | None = None
    rounds: int | None = None
    trials: tuple[str, ...] = ()


@dataclass(frozen=True)
class LeftOut:
    """A part of a study that the plan omits, and the reason."""

    what: str
    reason: str


@dataclass(frozen=True)
class Plan:
    """The trials and sweeps to measure, and the work that is omitted.

    Both are sorted: inference before training, CPU before CUDA, small batches before large.
    ``rounds`` is by trial id; trials without an entry have a single round.
    """

    trials: tuple[Trial, ...]
    left_out: tuple[LeftOut, ...] = ()
    rounds: Mapping[str, int] = field(default_factory=dict)
    sweeps: tuple[Sweep, ...] = ()

    @property
    def every_trial(self) -> tuple[Trial, ...]:
        """The trials, and the trial with the smallest batch size of each sweep."""
        return (*self.trials, *(sweep.trial for sweep in self.sweeps))


def plan_study(
    catalogue: Catalogue,
    study: Study,
    host: HostCapabilities,
    *,
    graphs: Mapping[str, str],
    request: RunRequest = RunRequest(),
) -> Plan:
    """Plan the trials of a study; ``graphs`` has SHA-256 digests of ONNX files by model id."""
    if not {host.hardware, AT_HAND} & {*study.hardware}:
        listed = ", ".join(study.hardware)
        reason = f"it is for the hardware {listed}; this run is for {host.hardware}"
        return Plan((), (LeftOut(f"study {study.id}", reason),))
    study = _quick_study(study) if request.quick else study
    rounds = request.rounds or study.rounds
    drafts = list(_trials_sweeps_and_omissions(catalogue, study, host, graphs, request))
    trials = tuple(draft for draft in drafts if isinstance(draft, Trial))
    sweeps = (replace(draft, rounds=rounds) for draft in drafts if isinstance(draft, Sweep))
    left_out = tuple(draft for draft in drafts if isinstance(draft, LeftOut))
    # LoadGen refuses runs that are too short, so trials under LoadGen have a single round.
    in_rounds = [trial for trial in trials if trial.work.scenario == "batch"]
    rounds_by_trial = {trial.id: rounds for trial in in_rounds if rounds > 1}
    return merge_plans([Plan(trials, left_out, rounds_by_trial, tuple(sweeps))])


def merge_plans(plans: Iterable[Plan]) -> Plan:
    """Merge plans; a trial in several of them appears once, with the largest number of rounds."""
    every = tuple(plans)
    trials = {trial.id: trial for plan in every for trial in plan.trials}
    left_out = dict.fromkeys(reason for plan in every for reason in plan.left_out)
    rounds: dict[str, int] = {}
    for each in (plan.rounds for plan in every):
        rounds |= {key: max(count, rounds.get(key, 1)) for key, count in each.items()}
    return Plan(
        tuple(sorted(trials.values(), key=_cost_rank)),
        tuple(left_out),
        rounds,
        _merged_sweeps(every),
    )


def _merged_sweeps(plans: Iterable[Plan]) -> tuple[Sweep, ...]:
    sweeps: dict[str, Sweep] = {}
    for sweep in (sweep for plan in plans for sweep in plan.sweeps):
        first = sweeps.setdefault(sweep.id, sweep)
        lowest = min(first, sweep, key=lambda each: each.trial.batch_size)
        sweeps[sweep.id] = replace(lowest, rounds=max(first.rounds, sweep.rounds))
    return tuple(sorted(sweeps.values(), key=lambda sweep: _cost_rank(sweep.trial)))


def why_left_out(left_out: Iterable[LeftOut]) -> Iterator[str]:
    """Yield a line for each reason, such as "trial A and 2 more: the reason"."""
    for reason, (first, *others) in group_by(left_out, lambda each: each.reason).items():
        yield f"{first.what}{f' and {len(others)} more' if others else ''}: {reason}"


def select(plan: Plan, ids: Collection[str]) -> Plan:
    """Only the plan's trials and sweeps with these ids; raises InputError for an unknown id."""
    trials = tuple(trial for trial in plan.trials if trial.id in ids)
    sweeps = tuple(sweep for sweep in plan.sweeps if sweep.id in ids)
    planned = {trial.id for trial in trials} | {sweep.id for sweep in sweeps}
    missing = [identifier for identifier in ids if identifier not in planned]
    if missing:
        reasons = "".join(f"\n  {reason}" for reason in why_left_out(plan.left_out))
        raise InputError(
            f"--trial {missing[0]}: expected the id of a trial that can run on the machine under "
            "its runtime: `epochcost plan --wide` lists the ids"
            + (reasons and f"; left out there:{reasons}")
        )
    return replace(plan, trials=trials, sweeps=sweeps)


def leave_out(plan: Plan, reason_of: Callable[[Trial], LeftOut | None]) -> Plan:
    """The plan without trials (or sweeps, by their first trial) that ``reason_of`` rejects."""
    reasons = {trial.id: reason for trial in plan.every_trial if (reason := reason_of(trial))}
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

    ``needed_bytes`` is by trial id. A trial stays in the plan if one of the numbers is unknown.
    """

    def reason(trial: Trial) -> LeftOut | None:
        needed, room = needed_bytes.get(trial.id, 0), room_bytes.get(trial.provider)
        if room is None or needed <= room:
            return None
        owner = "the machine" if trial.provider == "cpu" else "its GPU"
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


def _trials_sweeps_and_omissions(
    catalogue: Catalogue,
    study: Study,
    host: HostCapabilities,
    graphs: Mapping[str, str],
    request: RunRequest,
) -> Iterator[Trial | Sweep | LeftOut]:
    models, providers = request.models, request.providers
    for name, mode, provider in itertools.product(study.models, study.modes, study.providers):
        if (models and name not in models) or (providers and provider not in providers):
            continue
        model = catalogue.models[name]
        named = f"{name} {mode} {provider}"
        if model.graph is None:
            priced = "predicted from its form" if model.decoder else "priced from its FLOPs"
            yield LeftOut(name, f"the model has no graph: it is {priced}")
        elif not (model.training if mode == "training" else model.inference or model.decoder):
            yield LeftOut(named, f"the model's spec has no table [{mode}]")
        else:
            for trial in _trials(study, model, mode, provider, host, graphs):
                if provider == "cuda" and host.no_cuda is not None:
                    yield LeftOut(named, host.no_cuda)
                elif reason := next(filter(None, _possible_obstacles(model, trial, host)), None):
                    yield LeftOut(trial.title, reason)
                else:
                    yield _sweep_from(model, trial) if _is_swept(study, trial) else trial


def _trials(
    study: Study,
    model: Model,
    mode: Mode,
    provider: Provider,
    host: HostCapabilities,
    graphs: Mapping[str, str],
) -> Iterator[Trial]:
    steps = ((STEPS, size) for size in _batch_sizes_of_steps(study, model, mode))
    planned = (*steps, *planned_work(study, model, mode))
    counts = pinned_cpus(study, provider, host.cpus)
    spec_sha256 = work_sha256(model, mode)
    for precision, vcpus, (work, batch_size) in itertools.product(
        study.precisions, counts, planned
    ):
        yield Trial(
            model=model.id,
            mode=mode,
            provider=provider,
            precision=precision,
            batch_size=batch_size,
            vcpus=vcpus,
            session=session_settings(study, precision, vcpus, provider),
            seed=study.seed,
            runtime=work.engine if isinstance(work, Requests) else host.runtime,
            producer=host.producer,
            stored_weights=mode == "inference",
            graph_sha256=graphs[model.id],
            spec_sha256=spec_sha256,
            work=work,
            **dict(study.sampling),
        )


def _batch_sizes_of_steps(study: Study, model: Model, mode: Mode) -> tuple[int, ...]:
    """The batch sizes of a study's training or inference steps; for a sweep, only the smallest.

    Empty if the model's spec has no table for ``mode``, or if inference is only under LoadGen.
    """
    declared = model.training if mode == "training" else model.inference
    if declared is None or (mode == "inference" and "batch" not in study.scenarios):
        return ()
    sizes = _study_sizes(study, mode)
    return (min(declared.batch_sizes),) if sizes == "auto" else sizes or declared.batch_sizes


def _study_sizes(study: Study, mode: Mode) -> AskedBatchSizes | None:
    return study.training_batch_sizes if mode == "training" else study.inference_batch_sizes


def _is_swept(study: Study, trial: Trial) -> bool:
    return trial.work == STEPS and _study_sizes(study, trial.mode) == "auto"


def _sweep_from(model: Model, smallest: Trial) -> Sweep:
    training = model.training if smallest.mode == "training" else None
    if training is None or training.examples_per_epoch > MOST_BATCH:
        return Sweep(smallest, MOST_BATCH, "the largest batch that is ever tried")
    return Sweep(smallest, training.examples_per_epoch, "all examples of an epoch")


def _possible_obstacles(model: Model, trial: Trial, host: HostCapabilities) -> Iterator[str | None]:
    """Yield reasons why a trial cannot run on the machine; None for a requirement that is met."""
    training = model.training if trial.mode == "training" else None
    if training is not None and trial.batch_size > training.examples_per_epoch:
        yield "the batch is larger than an epoch has examples"
    yield unsupported_reason(trial, host.gpus)
    yield from _decoding_obstacles(model, trial)
    yield host.missing_engines.get(trial.runtime)
    if trial.vcpus is not None:
        yield host.no_pinning
        if host.cpus is not None and trial.vcpus > host.cpus:
            yield f"needs {trial.vcpus} CPUs; {host.cpus} can be used"
    if trial.work.scenario != "batch":
        yield host.no_loadgen
    load = trial.work
    if isinstance(load, Load) and (load.scenario, load.bound_seconds) == ("server", None):
        yield (
            "no latency bound is declared: write server_latency_ms in the model's table "
            "[inference] or the study's table [serving]"
        )


def _decoding_obstacles(model: Model, trial: Trial) -> Iterator[str]:
    work, decoder = trial.work, model.decoder
    if isinstance(work, Requests) and trial.precision not in _ENGINE_PRECISIONS:
        yield f"an engine answers requests in {', '.join(_ENGINE_PRECISIONS)} only"
    if decoder and isinstance(work, Phase | Requests) and work.length > decoder.context:
        yield f"{work.length} tokens are more than its context of {decoder.context}"


def _quick_study(study: Study) -> Study:
    full = study.sampling
    shorter = {
        "relative_half_width": max(full.relative_half_width, QUICK_RELATIVE_HALF_WIDTH),
        "minimum_samples": min(full.minimum_samples, QUICK_MINIMUM_SAMPLES),
        "budget_seconds": min(full.budget_seconds, QUICK_BUDGET_SECONDS),
    }
    quick = full.model_copy(update=shorter)
    # A study that is as quick keeps its rounds, since the results of both runs are the same files.
    return study if quick == full else study.model_copy(update={"sampling": quick, "rounds": 1})
