"""Runtimes beside the installed one: each in an environment of its own, in the user's cache.

Finding them, and whether a graph can be read; making one, which fetches packages, is left to
``runtime_install`` and its command. An environment is found under what it was made for: the
runtime, the Python and the versions of what a worker imports, so that two runtimes differ in
nothing else.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import onnx
from pydantic import ValidationError

from epochcost.errors import CapabilityError, ModelError
from epochcost.execute.folders import cache_folder
from epochcost.measure.runtime import RuntimeSupport, runtime_name
from epochcost.plan.trial import Trial
from epochcost.plan.variant import CUDA_12_RUNTIME
from epochcost.specs.requests import ENGINE
from epochcost.specs.study import Study

# What `epochcost.measure.worker` imports beside onnxruntime, LoadGen where it is installed.
WORKER_PACKAGES = ("numpy", "onnx", "psutil", "pydantic", "nvidia-ml-py", "mlcommons-loadgen")
# What CUDA needs beside the libraries that the runtime's own extras name: see `gpu` in pyproject.
_CUDA = (
    "nvidia-cublas",
    "nvidia-cuda-nvrtc",
    "nvidia-cuda-runtime",
    "nvidia-cudnn-cu13",
    "nvidia-cufft",
    "nvidia-curand",
    "nvidia-nvjitlink",
)
# Of the runtime for GPUs that CUDA 13 has left behind, with everything beside it; `make lock`.
_LOCK = Path(__file__).with_name("cuda12.txt")
_DESCRIPTION = "runtime.json"
_KEY_DIGITS = 12


@dataclass(frozen=True)
class RuntimeEnvironment:
    """A runtime that is ready to measure with: its environment, and what it reads."""

    folder: Path
    support: RuntimeSupport

    @property
    def runtime(self) -> str:
        """The package and its version."""
        return self.support.software.runtime

    @property
    def python(self) -> Path:
        """The interpreter of the environment."""
        return python_of(self.folder)


def python_of(folder: Path) -> Path:
    """The interpreter of a virtual environment."""
    return folder / "bin/python"


def requirements(runtime: str) -> tuple[str, ...]:
    """The packages of an environment, pinned: the runtime, and the rest as it is installed here.

    Of a runtime with a lock the lock's, whatever is installed.
    """
    if (lock := lock_file(runtime)) is not None:
        lines = lock.read_text(encoding="utf-8").splitlines()
        return tuple(line.rstrip(" \\") for line in lines if line[:1] not in {"", " ", "#"})
    pins = [*_pins(WORKER_PACKAGES)]
    if is_engine(runtime):
        # Over the same release of the runtime as here; of it the package for CPUs.
        return (runtime, f"onnxruntime=={runtime_name().partition('==')[2]}", *pins)
    cuda = [*_pins(_CUDA)] if runtime.startswith("onnxruntime-gpu==") else []
    # The extras name the libraries of the CUDA version that the runtime was built for.
    asked = runtime.replace("==", "[cuda,cudnn]==") if cuda else runtime
    return (asked, *pins, *cuda)


def is_engine(runtime: str) -> bool:
    """Whether this is an engine that serves language models over a runtime, and none itself."""
    return runtime.startswith(f"{ENGINE}==")


def lock_file(runtime: str) -> Path | None:
    """The file that pins a runtime's whole environment by hash; None for most."""
    return _LOCK if runtime == CUDA_12_RUNTIME else None


def _pins(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        try:
            yield f"{name}=={importlib.metadata.version(name)}"
        except importlib.metadata.PackageNotFoundError:
            continue


def environments_folder() -> Path:
    """The folder of all environments; it need not exist."""
    return cache_folder("runtimes")


def environment_folder(runtime: str) -> Path:
    """Where the environment of a runtime is, or would be made."""
    parts = [platform.python_version(), sys.platform, platform.machine(), *requirements(runtime)]
    key = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:_KEY_DIGITS]
    return environments_folder() / f"{runtime.replace('==', '-')}-{key}"


def write_description(folder: Path, support: RuntimeSupport) -> None:
    """Say in an environment what it is; only one with these words is ever used."""
    (folder / _DESCRIPTION).write_text(support.model_dump_json(indent=1) + "\n", encoding="utf-8")


def find_environment(runtime: str) -> RuntimeEnvironment | None:
    """The environment of a runtime; None where it is not made, or not whole."""
    found = _read(environment_folder(runtime))
    return found if found is not None and found.runtime == runtime else None


def all_environments() -> tuple[RuntimeEnvironment, ...]:
    """Every environment in the cache, those of other Pythons and versions too."""
    found = (_read(path) for path in sorted(environments_folder().glob("onnxruntime*")))
    return tuple(one for one in found if one is not None)


def _read(folder: Path) -> RuntimeEnvironment | None:
    try:
        support = RuntimeSupport.model_validate_json((folder / _DESCRIPTION).read_bytes())
    except (OSError, ValidationError):
        return None
    return RuntimeEnvironment(folder, support) if python_of(folder).exists() else None


def named_runtimes(studies: Iterable[Study]) -> tuple[str, ...]:
    """The runtimes that studies name, each once, without the installed one."""
    every = (runtime for study in studies for runtime in _named_by(study))
    return tuple(one for one in dict.fromkeys(every) if one != runtime_name())


def _named_by(study: Study) -> Iterator[str]:
    yield from study.runtimes or ()
    if study.requests is not None:
        yield study.requests.engine


def missing_runtimes(studies: Iterable[Study]) -> dict[str, str]:
    """The runtimes of studies that cannot be measured here yet, with what to do."""
    return {
        one: _not_prepared(one) for one in named_runtimes(studies) if find_environment(one) is None
    }


def _not_prepared(runtime: str) -> str:
    return (
        f"{runtime} is neither installed nor prepared; it is fetched by "
        f"`epochcost runtimes install {runtime}`"
    )


def interpreter(trial: Trial) -> Path | None:
    """The interpreter of a trial's runtime; None for the one that runs this program.

    Raises CapabilityError where the runtime is not prepared.
    """
    if trial.runtime == runtime_name():
        return None
    found = find_environment(trial.runtime)
    if found is None:
        raise CapabilityError(_not_prepared(trial.runtime))
    return found.python


def require_readable(graph: onnx.ModelProto, path: Path, runtime: str) -> None:
    """Raise ModelError where another runtime than the installed one is too old for a model's form.

    The installed one says so itself, when the worker opens its session.
    """
    found = find_environment(runtime) if runtime != runtime_name() else None
    if found is None:
        return
    opset = max(
        (one.version for one in graph.opset_import if one.domain in {"", "ai.onnx"}), default=0
    )
    asked = {
        "opset": (opset, found.support.opset),
        "IR version": (graph.ir_version, found.support.ir_version),
    }
    for what, (got, most) in asked.items():
        if got > most:
            raise ModelError(
                f"{path}: expected {what} {most} or older, the newest that {runtime} reads, got "
                f"{got}: export the model anew, or leave this runtime out of the study"
            )
