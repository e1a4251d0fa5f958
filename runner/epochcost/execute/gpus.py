"""Which GPU a run takes, asked for by name or named by its study, and what computes on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from epochcost.errors import CapabilityError
from epochcost.execute.runtimes import prepared
from epochcost.measure.environment import runtime_name, shown_gpus
from epochcost.measure.providers import require_provider
from epochcost.plan.kernels import no_kernels
from epochcost.plan.variant import knows_cuda
from epochcost.results.environment import Gpu
from epochcost.specs.hardware import Hardware
from epochcost.specs.study import Study
from epochcost.units import memory


def unusable_cuda(study: Study, machine: Hardware) -> Mapping[str, str]:
    """Why CUDA cannot be run here, by each runtime of the study under which it cannot."""
    capability = _capability(machine, study.cuda.device)
    reasons = {one: _unusable(one, capability) for one in study.runtimes or (runtime_name(),)}
    return {runtime: reason for runtime, reason in reasons.items() if reason is not None}


def _unusable(runtime: str, capability: str | None) -> str | None:
    """None also for a runtime that is not here, or that is built for the CPU alone."""
    if reason := no_kernels(runtime, capability):
        return reason
    found = None if runtime == runtime_name() else prepared(runtime)
    if runtime != runtime_name() and (found is None or not knows_cuda(runtime)):
        return None
    try:
        require_provider("cuda", None if found is None else found.python)
    except CapabilityError as error:
        return str(error)
    return None


def _capability(machine: Hardware, device: int) -> str | None:
    """Of the GPU at hand; of the machine's spec where none is shown, as before it is rented."""
    gpus = shown_gpus()
    if gpus:
        return gpus[device].compute_capability if device < len(gpus) else None
    declared = {one.compute_capability for one in machine.accelerators}
    return declared.pop() if len(declared) == 1 else None


def require_device(device: int | None) -> None:
    """Return if CUDA shows a GPU of that number, or none was asked for.

    Else raise CapabilityError. Where the driver's library keeps silent the trial itself will tell.
    """
    gpus = () if device is None else shown_gpus()
    if device is not None and gpus and device >= len(gpus):
        raise CapabilityError(
            f"--device {device}: demanded a GPU of that number; CUDA shows "
            f"{'; '.join(gpu_lines(gpus))}: name one of these"
        )


def on_device(studies: Iterable[Study], device: int | None) -> tuple[Study, ...]:
    """The studies, all on the GPU that was asked for, if one was."""
    if device is None:
        return tuple(studies)
    return tuple(
        study.model_copy(update={"cuda": study.cuda.model_copy(update={"device": device})})
        for study in studies
    )


def gpu_lines(gpus: Iterable[Gpu]) -> list[str]:
    """Each GPU by its number, name and memory, such as ``GPU 0: NVIDIA H100, 80.0 GiB``."""
    return [f"GPU {number}: {_words(gpu)}" for number, gpu in enumerate(gpus)]


def _words(gpu: Gpu) -> str:
    name = gpu.name or "of unknown name"
    return name if gpu.memory_bytes is None else f"{name}, {memory(gpu.memory_bytes)}"
