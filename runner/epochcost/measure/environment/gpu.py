"""The GPUs, as NVIDIA's driver describes them before a trial."""

from __future__ import annotations

import pynvml

from epochcost.measure.nvml import Handle, Library, answer, opened, text
from epochcost.results.records import Gpu

_HERTZ_PER_MEGAHERTZ = 1_000_000
_WATTS_PER_MILLIWATT = 1e-3


def gpus(library: Library = pynvml) -> tuple[tuple[Gpu, ...], str | None]:
    """Every GPU, and why there are none where a driver is there and does not answer."""
    try:
        with opened(library) as handles:
            driver = text(answer(library, library.nvmlSystemGetDriverVersion))
            return tuple(_gpu(library, handle, driver) for handle in handles), None
    except library.NVMLError_LibraryNotFound:
        return (), None
    except library.NVMLError as error:
        return (), f"NVML: {error}"


def _gpu(library: Library, handle: Handle, driver: str | None) -> Gpu:
    memory = answer(library, library.nvmlDeviceGetMemoryInfo, handle)
    limit = answer(library, library.nvmlDeviceGetEnforcedPowerLimit, handle)
    ecc = answer(library, library.nvmlDeviceGetEccMode, handle)
    mig = answer(library, library.nvmlDeviceGetMigMode, handle)
    return Gpu(
        name=text(answer(library, library.nvmlDeviceGetName, handle)),
        memory_bytes=int(memory.total) or None if memory is not None else None,
        driver=driver,
        power_limit_watts=limit * _WATTS_PER_MILLIWATT if limit else None,
        graphics_clock_hertz=_highest_clock(library, handle, library.NVML_CLOCK_GRAPHICS),
        memory_clock_hertz=_highest_clock(library, handle, library.NVML_CLOCK_MEM),
        # Both answers are pairs: the present mode, and that after the next reset.
        ecc=bool(ecc[0]) if ecc is not None else None,
        mig=bool(mig[0]) if mig is not None else None,
    )


def _highest_clock(library: Library, handle: Handle, kind: int) -> int | None:
    megahertz = answer(library, library.nvmlDeviceGetMaxClockInfo, handle, kind)
    return megahertz * _HERTZ_PER_MEGAHERTZ if megahertz else None
