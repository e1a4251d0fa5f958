"""Which GPUs each package of onnxruntime-gpu has kernels for, by NVIDIA's compute capability. Pure.

Read from the kernels' headers in the wheels for Linux on x86-64 (1.19.2, 1.23.2, 1.26.0 and every
minor release since): docs/running.md, "On older GPUs". What a machine has is passed in.
"""

from __future__ import annotations

# The newest package that stands on CUDA 12, for GPUs that CUDA 13 has left behind.
FOR_OLDER_GPUS = "onnxruntime-gpu==1.26.0"

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


def no_kernels(runtime: str, capability: str | None) -> str | None:
    """Why a package cannot compute on a GPU of this capability; None where it can, or who knows."""
    served = _served(runtime)
    if served is None or capability is None or _serves(served, capability):
        return None
    words = ", ".join(map(_words, served))
    return (
        f"provider cuda: demanded a GPU that {runtime} has kernels for, of compute capability "
        f"{words}; got one of {capability}: {_remedy(capability)}"
    )


def _remedy(capability: str) -> str:
    served = _served(FOR_OLDER_GPUS)
    assert served is not None
    if not _serves(served, capability):
        return "no package that a worker runs under has them"
    return (
        f"name {FOR_OLDER_GPUS} in the study's runtimes, which has them, and fetch it by "
        f"`epochcost runtimes install {FOR_OLDER_GPUS}`"
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
