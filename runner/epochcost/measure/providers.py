"""Which execution providers this machine can really use; found by trying, never by asking.

ONNX Runtime lists CUDA as available wherever its package was built with it, GPU or not.
"""

from __future__ import annotations

import functools
import json
import subprocess
from pathlib import Path

from epochcost.errors import CapabilityError
from epochcost.measure.start import last_words, run_module
from epochcost.specs.study import Provider

_PROBE = ("epochcost.measure.probe", "cuda")
# Starting CUDA on a machine with many GPUs takes tens of seconds.
_PROBE_SECONDS = 180
_REMEDY = (
    "a GPU needs the NVIDIA driver of its machine (580 or newer) and the CUDA 13 libraries "
    "(`pip install -r requirements/gpu.txt`); `--provider cpu` measures on this machine as it is"
)

_REMEDY_BESIDE = (
    "a GPU needs the NVIDIA driver of its machine, and the environment of another runtime its CUDA "
    'libraries: docs/running.md, "On older GPUs"'
)


def require_provider(provider: Provider, python: Path | None = None) -> None:
    """Return if ``provider`` runs a graph here; else raise CapabilityError saying what is missing.

    For CUDA a tiny graph is really run on the GPU, in a process of its own, under ``python``: the
    interpreter of another runtime's environment; None: this one.
    """
    missing = _missing(provider, python)
    if missing:
        raise CapabilityError(
            f"provider {provider}: demanded a usable GPU; this machine lacks "
            f"{'; '.join(missing)}: {_REMEDY if python is None else _REMEDY_BESIDE}"
        )


@functools.cache
def _missing(provider: Provider, python: Path | None) -> tuple[str, ...]:
    return () if provider == "cpu" else _probe_cuda(python)


def _probe_cuda(python: Path | None) -> tuple[str, ...]:
    try:
        probe = run_module(python, *_PROBE, timeout_seconds=_PROBE_SECONDS)
    except subprocess.TimeoutExpired:
        return (f"a CUDA driver that answers within {_PROBE_SECONDS} s",)
    try:
        return tuple(json.loads(probe.stdout.splitlines()[-1]))
    except (IndexError, json.JSONDecodeError):
        words = last_words(probe)
        return (f"a CUDA driver that does not crash (status {probe.returncode}: {words})",)
