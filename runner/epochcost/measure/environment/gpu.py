"""The GPUs, as NVIDIA's driver describes them before a trial."""

from __future__ import annotations

import os

import pynvml

from epochcost.measure.watching.devices import (
    VISIBLE_DEVICES,
    Handle,
    Library,
    VisibleGpu,
    answer,
    opened,
    pci_address,
    text,
    visible_gpus,
)
from epochcost.results.environment import Gpu

_HERTZ_PER_MEGAHERTZ = 1_000_000
_WATTS_PER_MILLIWATT = 1e-3


def gpus(library: Library = pynvml) -> tuple[tuple[Gpu, ...], str | None]:
    """Every GPU, and why there are none where a driver is there and does not answer."""
    try:
        with opened(library) as boards:
            return _described(library, visible_gpus(library, boards, None)), None
    except library.NVMLError_LibraryNotFound:
        return (), None
    except library.NVMLError as error:
        return (), f"NVML: {error}"


def shown_gpus(library: Library = pynvml) -> tuple[Gpu, ...]:
    """The GPUs that CUDA shows to a process started here, as it numbers them; none: no driver."""
    try:
        with opened(library) as boards:
            shown = os.environ.get(VISIBLE_DEVICES)
            return _described(library, visible_gpus(library, boards, shown))
    except library.NVMLError:
        return ()


def _described(library: Library, gpus: tuple[VisibleGpu, ...]) -> tuple[Gpu, ...]:
    driver = text(answer(library, library.nvmlSystemGetDriverVersion))
    return tuple(_gpu(library, gpu, driver) for gpu in gpus)


def _gpu(library: Library, gpu: VisibleGpu, driver: str | None) -> Gpu:
    handle, board = gpu.handle, gpu.board
    memory = answer(library, library.nvmlDeviceGetMemoryInfo, handle)
    limit = answer(library, library.nvmlDeviceGetEnforcedPowerLimit, board)
    ecc = answer(library, library.nvmlDeviceGetEccMode, board)
    mig = answer(library, library.nvmlDeviceGetMigMode, board)
    capability = answer(library, library.nvmlDeviceGetCudaComputeCapability, board)
    return Gpu(
        name=text(answer(library, library.nvmlDeviceGetName, handle)),
        memory_bytes=int(memory.total) or None if memory is not None else None,
        driver=driver,
        power_limit_watts=limit * _WATTS_PER_MILLIWATT if limit else None,
        graphics_clock_hertz=_highest_clock(library, board, library.NVML_CLOCK_GRAPHICS),
        memory_clock_hertz=_highest_clock(library, board, library.NVML_CLOCK_MEM),
        # Both answers are pairs: the present mode, and that after the next reset.
        ecc=bool(ecc[0]) if ecc is not None else None,
        mig=bool(mig[0]) if mig is not None else None,
        pci_address=pci_address(library, gpu),
        compute_capability=None if capability is None else ".".join(map(str, capability)),
    )


def _highest_clock(library: Library, handle: Handle, kind: int) -> int | None:
    megahertz = answer(library, library.nvmlDeviceGetMaxClockInfo, handle, kind)
    return megahertz * _HERTZ_PER_MEGAHERTZ if megahertz else None
