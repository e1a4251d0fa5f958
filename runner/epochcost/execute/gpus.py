"""Which GPU a run takes: the one that was asked for by name, or the one that its study names."""

from __future__ import annotations

from collections.abc import Iterable

from epochcost.errors import CapabilityError
from epochcost.measure.environment import shown_gpus
from epochcost.measure.providers import require_provider
from epochcost.results.records import Gpu
from epochcost.specs.study import Study
from epochcost.units import memory


def require_device(device: int | None) -> None:
    """Return if CUDA shows a usable GPU of that number, or none was asked for.

    Else raise CapabilityError. Where the driver's library keeps silent the trial itself will tell.
    """
    if device is None:
        return
    require_provider("cuda")
    gpus = shown_gpus()
    if gpus and device >= len(gpus):
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
