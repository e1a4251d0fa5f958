"""Variants of trials, such as precisions and numbers of CPUs, and reasons why one cannot run.

See docs/how-to/measure-a-rented-gpu.md, "On older GPUs".
"""

from __future__ import annotations

import re
from math import inf

from epochcost.plan.trial import SessionSettings, Trial
from epochcost.plan.work import Requests
from epochcost.specs.hardware import Hardware
from epochcost.specs.study import Cuda, Precision, Provider, Study

_BYTES_A_GIB = 2**30
_TRAINED_IN: tuple[Precision, ...] = ("fp32", "tf32", "fp16", "bf16")
# True of ONNX Runtime 1.31.1: on CPUs, hardly more than Cast and Identity has a bf16 kernel.
NO_BF16_ON_CPUS = (
    "ONNX Runtime's CPU provider has no bf16 kernel of a product, and opens no session for such a"
    " graph"
)


def pinned_cpus(study: Study, provider: Provider, cpus: int | None) -> tuple[int | None, ...]:
    """How many CPUs a study's trials on the CPU are pinned to; None for trials without pinning.

    Pinning emulates a smaller machine, so ``cpus``, all CPUs of this machine, becomes None.
    """
    if study.vcpus is None or provider != "cpu":
        return (None,)
    return tuple(None if count == cpus else count for count in study.vcpus)


def unsupported_reason(trial: Trial, gpus: int | None = None) -> str | None:
    """Why a trial's settings cannot be combined, else None; ``gpus`` is None if unknown."""
    precision, work = trial.precision, trial.work
    on_cpu, device = trial.provider == "cpu", trial.session.device
    trained = ", ".join(_TRAINED_IN)
    refused = {
        "TF32 is a format of NVIDIA's GPUs; a CPU computes in fp32": (
            precision == "tf32" and on_cpu
        ),
        NO_BF16_ON_CPUS: precision == "bf16" and on_cpu,
        f"training steps are in {trained}; {precision} is for inference only": (
            trial.mode == "training" and precision not in _TRAINED_IN
        ),
        "CUDA's attention with a cache needs half precision: fp16, bf16 or int4": (
            work.decodes and not on_cpu and precision in ("fp32", "tf32")
        ),
        "int4 is for decoders only": (precision == "int4" and not work.decodes),
        "an engine answers requests on the CPU only; no GPU was tried": (
            isinstance(work, Requests) and not on_cpu
        ),
        "a CUDA graph has one batch size, but batches under LoadGen vary": (
            work.scenario != "batch" and trial.session.cuda_graph
        ),
        f"needs GPU {device}; CUDA shows {gpus} here, counted from 0": (
            not on_cpu and gpus is not None and device >= gpus
        ),
    }
    return next((reason for reason, holds in refused.items() if holds), None)


def session_settings(
    study: Study, precision: Precision, vcpus: int | None, provider: Provider
) -> SessionSettings:
    """ONNX Runtime's settings for a trial; by default, a pinned trial has ``vcpus`` threads."""
    cuda = study.cuda if provider == "cuda" else Cuda()
    limit = cuda.memory_limit_gib
    return SessionSettings(
        threads=study.threads or vcpus or 0,
        tf32=precision == "tf32",
        cuda_graph=cuda.graphs,
        device=cuda.device,
        device_memory_limit_bytes=None if limit is None else int(limit * _BYTES_A_GIB),
    )


# The newest package for CUDA 12, for GPUs that CUDA 13 no longer supports.
CUDA_12_RUNTIME = "onnxruntime-gpu==1.26.0"

# Ranges of compute capabilities, ends included, that each release and the releases after it
# support. A range without an end includes PTX, which the driver compiles for later GPUs.
_Ranges = tuple[tuple[float, float], ...]
# From the headers of the kernels in the wheels for Linux on x86-64 of 1.19.2, 1.23.2, 1.26.0, and
# each later minor release.
_KERNELS: tuple[tuple[tuple[int, ...], _Ranges], ...] = (
    ((1, 29), ((7.5, 9.0), (12.0, 12.0))),
    ((1, 27), ((7.5, 9.0), (10.0, 10.0), (12.0, inf))),
    ((1, 23), ((6.0, inf),)),
    ((1, 19), ((5.2, inf),)),
)

CUDA_NEEDS_X86 = "its CPU is an Arm CPU, and ONNX Runtime with CUDA is packaged for x86-64 only"


def declared_obstacle(runtime: str, machine: Hardware) -> str | None:
    """Why an ONNX Runtime package cannot use the GPUs of a spec; None if it can or if unknown."""
    if machine.is_module_with_arm:
        return f"{machine.id} cannot use CUDA: {CUDA_NEEDS_X86}; use `--provider cpu` there"
    return missing_kernels(runtime, machine.compute_capability)


def missing_kernels(runtime: str, capability: str | None) -> str | None:
    """Why a package cannot use a GPU of this ``capability``; None if it can or if unknown."""
    ranges = _supported_capability_ranges(runtime)
    if not ranges or capability is None or _serves(ranges, capability):
        return None
    served = ", ".join(
        f"{low}" if low == high else f"{low} and later" if high == inf else f"{low} to {high}"
        for low, high in ranges
    )
    return (
        f"provider cuda: expected a GPU that {runtime} has kernels for, of compute capability "
        f"{served}, got one of {capability}: {_remedy(capability)}"
    )


def _remedy(capability: str) -> str:
    if not _serves(_supported_capability_ranges(CUDA_12_RUNTIME), capability):
        return "no package that epochcost supports has them"
    # Where to install it depends on the command: `launch` installs on the target.
    return f'{CUDA_12_RUNTIME} has them: docs/how-to/measure-a-rented-gpu.md, "On older GPUs"'


def _supported_capability_ranges(runtime: str) -> _Ranges:
    """Compute capabilities that a package has kernels for; empty if unknown or not for CUDA."""
    release = re.match(r"onnxruntime-gpu==(\d+)\.(\d+)", runtime)
    if release is None:
        return ()
    version = tuple(map(int, release.groups()))
    return next((ranges for first, ranges in _KERNELS if version >= first), ())


def _serves(ranges: _Ranges, capability: str) -> bool:
    return any(low <= float(capability) <= high for low, high in ranges)
