"""Which execution providers this machine can really use; found by trying, never by asking.

ONNX Runtime lists CUDA as available wherever its package was built with it, GPU or not.
"""

from __future__ import annotations

import functools
import json
import subprocess
import sys

from epochcost.errors import CapabilityError
from epochcost.specs.study import Provider

_PROBE = "epochcost.measure.probe"
# Starting CUDA on a machine with many GPUs takes tens of seconds.
_PROBE_SECONDS = 180
_REMEDY = (
    "a GPU needs the NVIDIA driver of its machine (580 or newer) and the CUDA 13 libraries "
    "(`pip install -r requirements/gpu.txt`); `--provider cpu` measures on this machine as it is"
)


def require_provider(provider: Provider) -> None:
    """Return if ``provider`` runs a graph here; else raise CapabilityError saying what is missing.

    For CUDA a tiny graph is really run on the GPU, in a process of its own.
    """
    missing = _missing(provider)
    if missing:
        raise CapabilityError(
            f"provider {provider}: demanded a usable GPU; this machine lacks "
            f"{'; '.join(missing)}: {_REMEDY}"
        )


def usable_providers() -> tuple[Provider, ...]:
    """List the providers that run a graph here."""
    every: tuple[Provider, ...] = ("cpu", "cuda")
    return tuple(provider for provider in every if not _missing(provider))


@functools.cache
def _missing(provider: Provider) -> tuple[str, ...]:
    return () if provider == "cpu" else _probe_cuda()


def _probe_cuda() -> tuple[str, ...]:
    try:
        probe = subprocess.run(
            [sys.executable, "-P", "-m", _PROBE],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_PROBE_SECONDS,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return (f"a CUDA driver that answers within {_PROBE_SECONDS} s",)
    try:
        return tuple(json.loads(probe.stdout.splitlines()[-1]))
    except (IndexError, json.JSONDecodeError):
        words = probe.stderr.strip().splitlines() or ["no last words"]
        return (f"a CUDA driver that does not crash (status {probe.returncode}: {words[-1]})",)
