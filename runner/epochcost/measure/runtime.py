"""Identify the runtime that executes graphs: the package that provides the module onnxruntime.

A worker in the environment of a serving engine imports this module, which therefore needs only
packages of that environment. It can be imported without onnxruntime.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import json
import platform
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

from epochcost import __version__
from epochcost.errors import CapabilityError
from epochcost.measure.gpus import misnaming_reason
from epochcost.measure.start import last_error_line, run_module
from epochcost.results.environment import Software
from epochcost.specs.requests import ENGINE

# The packages that provide the module onnxruntime, most specific first.
RUNTIMES = ("onnxruntime-gpu", "onnxruntime")
# Packages that may change a measured time, if installed; NVIDIA's come with the extra `gpu`.
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


def installed_versions(names: Iterable[str]) -> dict[str, str]:
    """The versions of those packages that are installed, by name and in the order of ``names``."""
    versions: dict[str, str] = {}
    for name in names:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return versions


def runtime_name() -> str:
    """The installed onnxruntime as ``package==version``; raises CapabilityError without one."""
    installed = [f"{name}=={version}" for name, version in installed_versions(RUNTIMES).items()]
    if not installed:
        raise CapabilityError(
            "onnxruntime: expected onnxruntime-gpu or onnxruntime to measure with; neither is "
            "installed: `pip install 'epochcost[run]'`"
        )
    return installed[0]


def package_versions() -> dict[str, str]:
    """Versions of installed packages that may change a measured time, by package name."""
    return {"epochcost": __version__, **installed_versions(_PACKAGES)}


def software(module: ModuleType) -> Software:
    """Versions of the runtime, of Python and of packages in this process.

    ``module`` is onnxruntime. Raises CapabilityError if no package of the same version contains it.
    """
    claims = tuple(_runtime_packages_containing(Path(str(module.__file__))))
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


def engine_software(module: ModuleType) -> Software:
    """As ``software``, with the engine as ``runtime`` and onnxruntime among the packages."""
    below = software(module)
    name, _, version = below.runtime.partition("==")
    return Software(
        runtime=f"{ENGINE}=={importlib.metadata.version(ENGINE)}",
        python=below.python,
        packages={**below.packages, name: version},
    )


def require_runtime(expected: str, actual: str) -> None:
    """Raise CapabilityError unless the worker's runtime is the runtime that the trial demands."""
    if expected != actual:
        raise CapabilityError(
            f"expected a worker with {expected}, got one with {actual}: "
            "a result is stored only under the runtime that computed it"
        )


def _runtime_packages_containing(file: Path) -> Iterator[tuple[str, str]]:
    for name in RUNTIMES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            distribution = importlib.metadata.distribution(name)
            place = Path(str(distribution.locate_file("onnxruntime/__init__.py")))
            if place.resolve() == file.resolve():
                yield name, distribution.version


_PROBE = "epochcost.measure.probe"
# Starting CUDA on a machine with many GPUs takes tens of seconds.
_PROBE_SECONDS = 180
_REMEDY = (
    "a GPU needs the NVIDIA driver of its machine (580 or newer) and the CUDA 13 libraries "
    "(`pip install -r requirements/gpu.txt`); `--provider cpu` measures on this machine as it is"
)


def require_cuda(device: int = 0) -> None:
    """Raise CapabilityError if CUDA runs no graph here, or if results would misname the GPU."""
    missing = _missing_for_cuda()
    if missing:
        raise CapabilityError(
            "provider cuda: expected a usable GPU; this machine lacks "
            f"{'; '.join(missing)}: {_REMEDY}"
        )
    if reason := misnaming_reason(device):
        raise CapabilityError(f"provider cuda: {reason}")


@functools.cache
def _missing_for_cuda() -> tuple[str, ...]:
    try:
        # ONNX Runtime lists CUDA even without a GPU. The test has its own process, because a CUDA
        # context holds GPU memory as long as its process lives.
        probe = run_module(None, _PROBE, "cuda", timeout_seconds=_PROBE_SECONDS)
    except subprocess.TimeoutExpired:
        return (f"a CUDA driver that answers within {_PROBE_SECONDS} s",)
    try:
        return tuple(json.loads(probe.stdout.splitlines()[-1]))
    except (IndexError, json.JSONDecodeError):
        last_line = last_error_line(probe)
        return (f"a CUDA driver that does not crash (status {probe.returncode}: {last_line})",)
