"""The variants of one piece of work that a study asks for: CPUs and precision. Pure.

Each is a trial of its own. Which of them a provider, a mode or a GPU does not know is said here,
with the reason; what a machine lacks is left to ``make``. Which GPUs a package of onnxruntime-gpu
has kernels for, by NVIDIA's compute capability, was read from the kernels' headers in the wheels
for Linux on x86-64 (1.19.2, 1.23.2, 1.26.0 and every minor release since): docs/running.md, "On
older GPUs".
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from epochcost.plan.trial import SessionSettings, Trial
from epochcost.plan.work import Requests, Work
from epochcost.specs.study import Cuda, Mode, Precision, Provider, Study

_BYTES_A_GIB = 2**30
_TRAINED_IN: tuple[Precision, ...] = ("fp32", "tf32", "fp16", "bf16")
# ONNX Runtime 1.31.1: of all operators, little more than Cast and Identity.
NO_BF16_ON_CPUS = (
    "ONNX Runtime's CPU provider has no bf16 kernel of a product, and opens no session for such a"
    " graph"
)


@dataclass(frozen=True)
class Variant:
    """One way to run a piece of work; ``vcpus`` None: on all CPUs."""

    precision: Precision = "fp32"
    vcpus: int | None = None


def variants(study: Study, provider: Provider, cpus: int | None = None) -> Iterator[Variant]:
    """Every combination that the study asks for; pinning to CPUs is of the CPU provider.

    All of the machine's ``cpus`` (None: not known) are no emulation of anything: that is the plain
    variant.
    """
    asked = study.vcpus if study.vcpus is not None and provider == "cpu" else (None,)
    vcpus = [None if count == cpus else count for count in asked]
    for precision, count in itertools.product(study.precisions, vcpus):
        yield Variant(precision, count)


def unsupported_reason(variant: Variant, mode: Mode, provider: Provider, work: Work) -> str | None:
    """Why no machine runs this variant of the work; None if some can."""
    precision = variant.precision
    trained = ", ".join(_TRAINED_IN)
    refused = {
        "TF32 is a format of NVIDIA's GPUs; a CPU computes in fp32": (
            precision == "tf32" and provider == "cpu"
        ),
        NO_BF16_ON_CPUS: precision == "bf16" and provider == "cpu",
        f"training steps are in {trained}; {precision} is of inference": (
            mode == "training" and precision not in _TRAINED_IN
        ),
        "CUDA's attention with a cache is of half precision: fp16, bf16 or int4": (
            work.decodes and provider == "cuda" and precision in ("fp32", "tf32")
        ),
        "int4 is of decoders, whose weights alone have 4 bits": (
            precision == "int4" and not work.decodes
        ),
    }
    return next((reason for reason, holds in refused.items() if holds), None)


def session_settings(study: Study, variant: Variant, provider: Provider) -> SessionSettings:
    """How the study has ONNX Runtime set up for a variant; on a CPU nothing is said of GPUs.

    Threads that the study leaves open are as many as the CPUs that a trial is pinned to.
    """
    cuda = study.cuda if provider == "cuda" else Cuda()
    limit = cuda.memory_limit_gib
    return SessionSettings(
        threads=study.threads or variant.vcpus or 0,
        tf32=variant.precision == "tf32",
        cuda_graph=cuda.graphs,
        device=cuda.device,
        device_memory_limit_bytes=None if limit is None else int(limit * _BYTES_A_GIB),
    )


def unmet_reason(trial: Trial, gpus: int | None) -> str | None:
    """Why the provider does not do the trial; None if it does. ``gpus`` are those shown."""
    if trial.provider != "cuda":
        return None
    if isinstance(trial.work, Requests):
        return "requests to an engine are answered on the CPU; no GPU was tried"
    if trial.work.scenario != "batch" and trial.session.cuda_graph:
        return "a CUDA graph is of one batch size; under LoadGen batches are of many"
    if gpus is not None and trial.session.device >= gpus:
        return f"needs GPU {trial.session.device}; CUDA shows {gpus} here, counted from 0"
    return None


# The newest package that stands on CUDA 12, for GPUs that CUDA 13 has left behind.
CUDA_12_RUNTIME = "onnxruntime-gpu==1.26.0"

_PACKAGE = "onnxruntime-gpu=="
_Number = tuple[int, ...]
# By the first release: ranges of capabilities, ends included. None: the last kernels are also there
# as PTX, which the driver compiles for whatever comes later.
_KERNELS: tuple[tuple[_Number, tuple[tuple[str, str | None], ...]], ...] = (
    ((1, 29), (("7.5", "9.0"), ("12.0", "12.0"))),
    ((1, 27), (("7.5", "9.0"), ("10.0", "10.0"), ("12.0", None))),
    ((1, 23), (("6.0", None),)),
    ((1, 19), (("5.2", None),)),
)


def missing_kernels(runtime: str, capability: str | None) -> str | None:
    """Why a package cannot compute on a GPU of this capability; None: it can, or nobody knows."""
    served = _served(runtime)
    if served is None or capability is None or _serves(served, capability):
        return None
    words = ", ".join(map(_words, served))
    return (
        f"provider cuda: expected a GPU that {runtime} has kernels for, of compute capability "
        f"{words}, got one of {capability}: {_remedy(capability)}"
    )


def _remedy(capability: str) -> str:
    served = _served(CUDA_12_RUNTIME)
    assert served is not None
    if not _serves(served, capability):
        return "no package that a worker runs under has them"
    return (
        f"install epochcost with {CUDA_12_RUNTIME}, which has them, in a new environment: "
        'docs/running.md, "On older GPUs"'
    )


def _served(runtime: str) -> tuple[tuple[str, str | None], ...] | None:
    """The ranges of a package; None for one that knows no CUDA or that nobody has read."""
    if not runtime.startswith(_PACKAGE):
        return None
    release = _number(runtime.removeprefix(_PACKAGE))
    return next((ranges for first, ranges in _KERNELS if release >= first), None)


def _serves(ranges: tuple[tuple[str, str | None], ...], capability: str) -> bool:
    got = _number(capability)
    return any(
        _number(low) <= got and (high is None or got <= _number(high)) for low, high in ranges
    )


def _number(text: str) -> _Number:
    """The leading numbers of a version: of 1.31.1rc1 the first three."""
    digits = "".join(one if one.isdigit() else " " for one in text).split()
    return tuple(map(int, digits[:3]))


def _words(served: tuple[str, str | None]) -> str:
    low, high = served
    if high is None:
        return f"{low} and later"
    return low if low == high else f"{low} to {high}"
