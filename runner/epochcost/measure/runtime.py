"""Which runtime executes a graph here: the package, proved by the module that is really loaded.

Importable where onnxruntime is not installed, and without reading the machine: a worker in an
environment of another runtime needs it. Making such environments is left to ``execute.runtimes``.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import platform
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from epochcost import __version__
from epochcost.errors import CapabilityError
from epochcost.results.environment import Software
from epochcost.results.fields import Record

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


class RuntimeSupport(Record):
    """A runtime, and the newest opset of ``ai.onnx`` and form of the file (IR) that it reads."""

    software: Software
    opset: int
    ir_version: int


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
        "onnxruntime: demanded onnxruntime-gpu or onnxruntime to measure with; neither is "
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
            f"{module.__file__}: demanded the package that this onnxruntime {module.__version__} "
            f"belongs to; got {claimed}: install one runtime in a fresh environment"
        )
    return Software(
        runtime=f"{agreed[0]}=={module.__version__}",
        python=platform.python_version(),
        packages=package_versions(),
    )


def require_runtime(demanded: str, found: str) -> None:
    """Raise CapabilityError where a trial would be measured under another runtime than its own."""
    if demanded != found:
        raise CapabilityError(
            f"demanded a worker with {demanded}; got one with {found}: "
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
