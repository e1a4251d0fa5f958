"""The fingerprint of a host: what makes two machines alike, as one hash."""

from __future__ import annotations

import hashlib

from epochcost.results.records import Gpu

_GIB = 2**30


def fingerprint(
    cpu: str | None,
    physical_cores: int | None,
    logical_cpus: int,
    memory_bytes: int,
    gpus: tuple[Gpu, ...],
) -> str:
    """Hash what makes two hosts alike: CPU, cores, memory to the GiB, GPUs; 16 hex digits.

    Drivers and kernels may differ: they are versions, not machines. Memory is rounded because
    what a kernel keeps for itself varies from boot to boot.
    """
    parts = [cpu, physical_cores, logical_cpus, round(memory_bytes / _GIB)]
    parts += [f"{gpu.name}/{round((gpu.memory_bytes or 0) / _GIB)}" for gpu in gpus]
    return hashlib.sha256("|".join(map(str, parts)).encode()).hexdigest()[:16]
