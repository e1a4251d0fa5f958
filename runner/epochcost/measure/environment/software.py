"""The software that measures: its packages, and the revision of its own code."""

from __future__ import annotations

import contextlib
import importlib.metadata
from dataclasses import dataclass
from pathlib import Path

from epochcost import __version__
from epochcost.errors import CapabilityError
from epochcost.measure.environment.commands import output, raw_output

# The distributions that provide the module onnxruntime, most specific first.
_RUNTIMES = ("onnxruntime-gpu", "onnxruntime")
# Those absent are left out; the NVIDIA ones are there where the extra `gpu` is installed.
_PACKAGES = (
    "numpy",
    "onnx",
    "nvidia-cublas",
    "nvidia-cuda-runtime",
    "nvidia-cudnn-cu13",
    "nvidia-cufft",
    "nvidia-ml-py",
    "psutil",
)
_CODE = Path(__file__).parents[2]


@dataclass(frozen=True)
class Revision:
    """The commit of a checkout, and whether files below the code's folder differ from it."""

    commit: str
    modified: bool


def runtime_name() -> str:
    """Name the installed package that provides onnxruntime, as ``package==version``.

    Raises CapabilityError where there is none.
    """
    for name in _RUNTIMES:
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


def code_revision(folder: Path = _CODE) -> Revision | None:
    """The revision of the code in a folder; None where no git tracks it, as for a wheel.

    An environment within somebody else's checkout is not taken for that checkout's code.
    """
    git = ("git", "--no-optional-locks", "-C", str(folder))
    if raw_output(*git, "ls-files", "--error-unmatch", "__init__.py") is None:
        return None
    commit = output(*git, "rev-parse", "HEAD")
    changes = raw_output(*git, "status", "--porcelain", "--", ".")
    return (
        Revision(commit, modified=bool(changes.strip())) if commit and changes is not None else None
    )
