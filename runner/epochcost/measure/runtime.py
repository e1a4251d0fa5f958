"""Which runtime executes a graph here: the package, proved by the module that is really loaded.

Whether it can use CUDA is found by trying, never by asking: ONNX Runtime lists CUDA as available
wherever its package was built with it, GPU or not. Importable where onnxruntime is not installed,
and without reading the machine: a worker in the environment of an engine needs it. Making such
environments is left to ``execute.engines``.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import json
import platform
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from epochcost import __version__
from epochcost.errors import CapabilityError
from epochcost.measure.start import last_words, run_module
from epochcost.results.environment import Software

# The distributions that provide the module onnxruntime, most specific first.
RUNTIMES = ("onnxruntime-gpu", "onnxruntime")
# Those absent are left out; the NVIDIA ones are there where the extra `gpu` is installed.
_PACKAGES = (
    "numpy",
    "onnx",
    "nvidia-cublas",
    "nvidia-cublas-cu12",
    "nvidia-cuda-runtime",
    "nvidia-cuda-runtime-cu12",
    "nvidia-cudnn-cu12",
    "nvidia-cudnn-cu13",
    "nvidia-cufft",
    "nvidia-cufft-cu12",
    "nvidia-ml-py",
    "psutil",
)


def runtime_name() -> str:
    """Name the installed package that provides onnxruntime, as ``package==version``.

    Raises CapabilityError where there is none.
    """
    for name in RUNTIMES:
        try:
            return f"{name}=={importlib.metadata.version(name)}"
        except importlib.metadata.PackageNotFoundError:
            continue
    raise CapabilityError(
        "onnxruntime: expected onnxruntime-gpu or onnxruntime to measure with; neither is "
        "installed: `pip install 'epochcost[run]'`"
    )


def package_versions() -> dict[str, str]:
    """By name, the version of every package that may change a figure."""
    versions = {"epochcost": __version__}
    for name in _PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return versions


def software(module: ModuleType) -> Software:
    """What this process runs with; ``module`` is the onnxruntime that it has loaded.

    The name is that of the package whose files the module is, and the module says the same version.
    Raises CapabilityError where no package or another version claims it.
    """
    claims = tuple(_claims(Path(str(module.__file__))))
    agreed = [name for name, version in claims if version == module.__version__]
    if not agreed:
        claimed = " and ".join(f"{name}=={version}" for name, version in claims) or "no package"
        raise CapabilityError(
            f"{module.__file__}: expected the package that this onnxruntime {module.__version__} "
            f"belongs to, got {claimed}: install one runtime in a fresh environment"
        )
    return Software(
        runtime=f"{agreed[0]}=={module.__version__}",
        python=platform.python_version(),
        packages=package_versions(),
    )


def engine_software(module: ModuleType, engine: str) -> Software:
    """What this process runs with where an engine runs the graphs over ``module``."""
    below = software(module)
    name, _, version = below.runtime.partition("==")
    return Software(
        runtime=f"{engine}=={importlib.metadata.version(engine)}",
        python=below.python,
        packages={**below.packages, name: version},
    )


def require_runtime(expected: str, found: str) -> None:
    """Raise CapabilityError where a trial would be measured under another runtime than its own."""
    if expected != found:
        raise CapabilityError(
            f"expected a worker with {expected}, got one with {found}: "
            "no figure of one runtime is stored under another's name"
        )


def _claims(file: Path) -> Iterator[tuple[str, str]]:
    """The installed runtimes to whose files a module belongs, with their versions."""
    for name in RUNTIMES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found = importlib.metadata.distribution(name)
            place = Path(str(found.locate_file("onnxruntime/__init__.py")))
            if place.resolve() == file.resolve():
                yield name, found.version


_PROBE = ("epochcost.measure.probe", "cuda")
# Starting CUDA on a machine with many GPUs takes tens of seconds.
_PROBE_SECONDS = 180
_REMEDY = (
    "a GPU needs the NVIDIA driver of its machine (580 or newer) and the CUDA 13 libraries "
    "(`pip install -r requirements/gpu.txt`); `--provider cpu` measures on this machine as it is"
)


def require_cuda() -> None:
    """Return if CUDA runs a graph here; else raise CapabilityError saying what is missing.

    A tiny graph is really run on the GPU, in a process of its own.
    """
    missing = _missing_for_cuda()
    if missing:
        raise CapabilityError(
            "provider cuda: expected a usable GPU; this machine lacks "
            f"{'; '.join(missing)}: {_REMEDY}"
        )


@functools.cache
def _missing_for_cuda() -> tuple[str, ...]:
    try:
        probe = run_module(None, *_PROBE, timeout_seconds=_PROBE_SECONDS)
    except subprocess.TimeoutExpired:
        return (f"a CUDA driver that answers within {_PROBE_SECONDS} s",)
    try:
        return tuple(json.loads(probe.stdout.splitlines()[-1]))
    except (IndexError, json.JSONDecodeError):
        words = last_words(probe)
        return (f"a CUDA driver that does not crash (status {probe.returncode}: {words})",)
