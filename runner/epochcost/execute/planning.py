"""Plan a run: choose the trials of the studies that this machine can measure.

A trial whose memory cannot be estimated stays in the plan.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from operator import attrgetter
from typing import Any

from epochcost import __version__
from epochcost.errors import CapabilityError, InputError
from epochcost.execute.engines import missing_engines
from epochcost.execute.graph_facts import GraphFacts
from epochcost.measure.environment import detect_environment
from epochcost.measure.gpus import shown_gpus
from epochcost.measure.loadgen import missing_loadgen
from epochcost.measure.memory import memory_limit_bytes
from epochcost.measure.pinning import pinnable_cpus, why_not_pinned
from epochcost.measure.runtime import require_cuda, runtime_name
from epochcost.plan.make import (
    HostCapabilities,
    LeftOut,
    Plan,
    RunRequest,
    leave_out,
    leave_out_oversized,
    merge_plans,
    plan_study,
    select,
)
from epochcost.plan.trial import Trial
from epochcost.plan.variant import declared_obstacle, missing_kernels
from epochcost.plan.work import Phase, Requests
from epochcost.results.environment import Gpu
from epochcost.results.plausibility import require_plausible
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.hardware import Hardware
from epochcost.specs.study import Mode, Precision, Provider, Study
from epochcost.specs.target import PINNED_RUNTIME
from epochcost.statistics import group_by
from epochcost.units import memory

_GIB = 2**30


def cuda_obstacle(study: Study, machine: Hardware) -> str | None:
    """The reason why a study cannot use CUDA here; None if it can."""
    gpus, device = shown_gpus(), study.cuda.device
    # From the driver, or from the spec if no GPU is visible.
    capability = None if gpus else machine.compute_capability
    if device < len(gpus):
        capability = gpus[device].compute_capability
    if reason := missing_kernels(runtime_name(), capability):
        return reason
    try:
        require_cuda(device)
    except CapabilityError as error:
        return declared_obstacle(runtime_name(), machine) or str(error)
    return None


def require_device(device: int | None) -> None:
    """Raise CapabilityError if CUDA shows GPUs, but none with the number ``device``."""
    gpus = () if device is None else shown_gpus()
    if device is not None and gpus and device >= len(gpus):
        raise CapabilityError(
            f"--device {device}: expected a GPU of that number; CUDA shows "
            f"{'; '.join(gpu_descriptions(gpus))}: name one of these"
        )


def gpu_descriptions(gpus: Iterable[Gpu]) -> list[str]:
    """Number, name and memory of each GPU, such as ``GPU 0: NVIDIA H100, 80.0 GiB``."""
    return [
        f"GPU {number}: {gpu.name or 'of unknown name'}"
        + ("" if gpu.memory_bytes is None else f", {memory(gpu.memory_bytes)}")
        for number, gpu in enumerate(gpus)
    ]


# Memory as a multiple of the memory in fp32: the trial's own numbers, and those of the fp32 graph
# with which outputs are compared. In int4, three decoders had peaks of 0.48 to 0.68 of fp32.
_TIMES_FP32: Mapping[Precision, float] = {
    "fp32": 1,
    "tf32": 2,
    "fp16": 1.5,
    "bf16": 1.5,
    "int4": 0.65,
}
# A GPU holds weights twice, before and after they are packed; fp32 weights stay on the host.
_DECODERS_ON_GPUS: Mapping[Precision, float] = {"fp16": 0.5, "bf16": 0.5, "int4": 0.25}


def room_bytes(devices: Iterable[int] = (0,)) -> dict[Provider, int]:
    """Memory for a trial here by provider, for CUDA the smallest GPU's; no entry if unknown."""
    room: dict[Provider, int] = {"cpu": memory_limit_bytes()}
    sizes_by_device = dict(enumerate(gpu.memory_bytes for gpu in shown_gpus()))
    sizes = [size for device in devices if (size := sizes_by_device.get(device)) is not None]
    if sizes:
        room["cuda"] = min(sizes)
    return room


def without_oversized(
    facts: GraphFacts, plan: Plan, room: Mapping[Provider, int] | None = None
) -> Plan:
    """The plan without trials that need more memory than ``room``, by default this machine's."""
    if room is None:
        devices = {trial.session.device for trial in plan.trials if trial.provider == "cuda"}
        room = room_bytes(devices)
    return leave_out_oversized(plan, dict(_needed_bytes_by_trial(facts, plan.trials, room)), room)


def _needed_bytes_by_trial(
    facts: GraphFacts, trials: Sequence[Trial], room: Mapping[Provider, int]
) -> Iterator[tuple[str, int]]:
    yield from _decoder_bytes_by_trial(facts, trials)
    steps = [trial for trial in trials if not trial.work.decodes]
    settings = attrgetter("model", "mode", "provider", "precision")
    for (model, mode, provider, _), swept in group_by(steps, settings).items():
        sweep = sorted(swept, key=lambda trial: trial.batch_size)
        # If the largest batch size fits, smaller ones are taken to fit and are not counted.
        counted = _memory_bytes(facts, model, mode, provider, sweep[-1:])
        if any(needed > room.get(provider, needed) for needed in counted.values()):
            counted = _memory_bytes(facts, model, mode, provider, sweep)
        yield from counted.items()


def _decoder_bytes_by_trial(
    facts: GraphFacts, trials: Sequence[Trial]
) -> Iterator[tuple[str, int]]:
    for trial in trials:
        if isinstance(trial.work, Phase | Requests) and (
            bytes_of := facts.decoder_bytes(trial.model)
        ):
            needed = bytes_of(trial.batch_size, trial.work.length)
            factors = _TIMES_FP32 if trial.provider == "cpu" else _DECODERS_ON_GPUS
            yield trial.id, math.ceil(needed * factors.get(trial.precision, 1))


def _memory_bytes(
    facts: GraphFacts, name: str, mode: Mode, provider: Provider, trials: Sequence[Trial]
) -> dict[str, int]:
    sizes = facts.footprints(name, mode, provider, frozenset(trial.batch_size for trial in trials))
    return {
        trial.id: math.ceil(
            sizes[trial.batch_size].memory_bytes(provider) * _TIMES_FP32[trial.precision]
        )
        for trial in trials
        if trial.batch_size in sizes
    }


def plan_run(catalogue: Catalogue, request: RunRequest) -> Plan:
    """Plan the trials of a run on this machine, without those that need too much memory.

    Raises InputError for an unknown name, for a model that no chosen study lists, and unless
    ``request.as_is`` for a machine that differs from its spec. Raises CapabilityError if requested
    CUDA cannot be used.
    """
    machine = catalogue.machine(request.hardware)
    studies = _studies(catalogue, request)
    no_cuda = _cuda_obstacles(studies, machine, request)
    require_device(request.device)
    require_plausible(machine, detect_environment(), as_is=request.as_is)
    host = HostCapabilities(
        request.hardware,
        runtime_name(),
        __version__,
        missing_engines=missing_engines(studies),
        no_loadgen=missing_loadgen(),
        cpus=pinnable_cpus(),
        no_pinning=why_not_pinned(),
        gpus=len(shown_gpus()) or None,
    )
    hosts = [replace(host, no_cuda=reason) for reason in no_cuda]
    return _plan_measurable_trials(GraphFacts(catalogue), request, studies, hosts)


def plan_elsewhere(facts: GraphFacts, request: RunRequest, runtime: str = PINNED_RUNTIME) -> Plan:
    """Plan the trials of a run on another machine, from that machine's spec.

    ``runtime`` is ONNX Runtime's package there, by default that of the extra `run` for Linux on
    x86-64. Raises InputError for an unknown name, and for a model that no chosen study lists.
    """
    machine = facts.catalogue.machine(request.hardware)
    studies = _studies(facts.catalogue, request)
    host = HostCapabilities(
        request.hardware,
        runtime,
        __version__,
        cpus=machine.vcpus,
        gpus=sum(chip.count for chip in machine.accelerators) or None,
    )
    no_cuda = declared_obstacle(host.runtime, machine)
    if not machine.accelerators and not machine.detected:
        no_cuda = f"{machine.id} has no accelerator"
    hosts = [replace(host, no_cuda=no_cuda)] * len(studies)
    gpus = [chip.memory_gib for chip in machine.accelerators if chip.memory_gib is not None]
    sizes: dict[Provider, Decimal | None] = {
        "cpu": machine.memory_gib,
        "cuda": min(gpus, default=None),
    }
    room = {kind: int(size * _GIB) for kind, size in sizes.items() if size is not None}
    return _plan_measurable_trials(facts, request, studies, hosts, room)


def _plan_measurable_trials(
    facts: GraphFacts,
    request: RunRequest,
    studies: Sequence[Study],
    hosts: Sequence[HostCapabilities],
    room: Mapping[Provider, int] | None = None,
) -> Plan:
    """Plan the trials that a machine can measure and that fit into its memory.

    ``hosts`` has an entry for each study, since CUDA may work on only some of the machine's GPUs.
    ``room`` is the memory for a trial in bytes, by provider; None means that of this machine.
    """
    models = {model for study in studies for model in study.models}
    chosen = models & set(request.models) if request.models else models
    graphs = {name: digest for name in sorted(chosen) if (digest := facts.sha256(name))}
    whole = merge_plans(
        plan_study(facts.catalogue, study, host, graphs=graphs, request=request)
        for study, host in zip(studies, hosts, strict=True)
    )
    if not (whole.trials or whole.sweeps or whole.left_out):
        return replace(whole, left_out=tuple(_unselected(studies, request)))
    usable = leave_out(whole, lambda trial: _faulty_file(facts, trial))
    if request.trials:
        usable = select(usable, request.trials)
    measurable = leave_out(usable, lambda trial: _missing_precision(facts, trial))
    return without_oversized(facts, measurable, room)


def _faulty_file(facts: GraphFacts, trial: Trial) -> LeftOut | None:
    fault = facts.fault(trial.model)
    return None if fault is None else LeftOut(trial.model, fault)


def _missing_precision(facts: GraphFacts, trial: Trial) -> LeftOut | None:
    """Omit a decoder's trial in a precision that the decoder's ONNX file does not support."""
    why = facts.why_unmeasured(trial.model, trial.precision) if trial.work.decodes else None
    return LeftOut(trial.title, f"of {trial.model}, {why}") if why else None


def _unselected(studies: Sequence[Study], request: RunRequest) -> Iterator[LeftOut]:
    if not studies:
        yield LeftOut("every trial", "specs/studies/ has no study: write one there")
    for study in studies:
        if {*study.models}.isdisjoint(request.models or study.models):
            yield LeftOut(f"study {study.id}", "it does not name the requested models")
        else:
            its, requested = ", ".join(study.providers), ", ".join(request.providers)
            reason = f"it is for {its}, not for {requested}: name another --study or --provider"
            yield LeftOut(f"study {study.id}", reason)


def _studies(catalogue: Catalogue, request: RunRequest) -> tuple[Study, ...]:
    names = request.studies or tuple(sorted(catalogue.studies))
    studies = tuple(catalogue.study(name) for name in names)
    for name in request.models:
        if not any(catalogue.model(name).id in study.models for study in studies):
            raise InputError(
                f"--model {name}: expected a model of the studies {', '.join(names)}: add it to a "
                "study, or choose another model"
            )
    changes: dict[str, Any] = {"vcpus": request.vcpus} if request.vcpus else {}
    if (size := request.batch_size) is not None:
        sizes = size if size == "auto" else (size,)
        changes |= {"training_batch_sizes": sizes, "inference_batch_sizes": sizes}
    if request.device is None:
        return tuple(study.model_copy(update=changes) for study in studies)
    device = {"device": request.device}
    return tuple(
        study.model_copy(update={**changes, "cuda": study.cuda.model_copy(update=device)})
        for study in studies
    )


def _cuda_obstacles(
    studies: Sequence[Study], machine: Hardware, request: RunRequest
) -> list[str | None]:
    """For each study, why it cannot use CUDA; None if it can, or if CUDA is not requested.

    Raises CapabilityError if the request names CUDA or a GPU, and no study can use CUDA.
    """
    named = "cuda" in request.providers or request.device is not None
    if not named and request.providers:
        return [None] * len(studies)
    no_cuda = [cuda_obstacle(study, machine) for study in studies]
    if named and no_cuda and all(no_cuda):
        raise CapabilityError(str(no_cuda[0]))
    return no_cuda
