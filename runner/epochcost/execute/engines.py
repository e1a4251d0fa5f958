"""Install serving engines, each in a separate virtual environment in the user's cache."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from pydantic import ValidationError

from epochcost.errors import CapabilityError
from epochcost.execute.folders import optional_cache_folder
from epochcost.measure.runtime import RUNTIMES, installed_versions, require_runtime, runtime_name
from epochcost.measure.start import last_lines, run_captured, run_module
from epochcost.plan.trial import Trial
from epochcost.plan.work import Requests
from epochcost.results.environment import Software
from epochcost.results.files import locked, workplace
from epochcost.specs.study import Study

# The packages that `epochcost.measure.worker` imports, except onnxruntime; LoadGen if installed.
WORKER_PACKAGES = ("numpy", "onnx", "psutil", "pydantic", "nvidia-ml-py", "mlcommons-loadgen")
Say = Callable[[str], None]

_CACHE = "runtimes"
_KEY_DIGITS = 12
_MAKING = ".making-"
_LAST_LINES = 6
_PIP_OPTIONS = ("--quiet", "--no-input", "--disable-pip-version-check", "--only-binary", ":all:")


def python_of(folder: Path) -> Path:
    """The path of the Python interpreter in a virtual environment."""
    return folder / "bin/python"


def requirements(engine: str) -> tuple[str, ...]:
    """The engine, ONNX Runtime for CPUs and the worker's packages, in the versions used here."""
    worker = (f"{name}=={version}" for name, version in installed_versions(WORKER_PACKAGES).items())
    return (engine, f"onnxruntime=={runtime_name().partition('==')[2]}", *worker)


def environments_folder() -> Path:
    """The folder that contains the environments of all engines; it need not exist.

    Raises CapabilityError if the user has no home folder.
    """
    folder = optional_cache_folder(_CACHE)
    if folder is None:
        raise CapabilityError(
            "expected a home folder of this user, found none: name a folder for caches with the "
            "environment variable XDG_CACHE_HOME"
        )
    return folder


def environment_folder(engine: str) -> Path:
    """The folder of an engine's environment; it need not exist."""
    parts = [platform.python_version(), sys.platform, platform.machine(), *requirements(engine)]
    key = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:_KEY_DIGITS]
    return environments_folder() / f"{engine.replace('==', '-')}-{key}"


def find_environment(engine: str) -> Path | None:
    """The folder of an engine's environment; None if the environment is missing."""
    if optional_cache_folder(_CACHE) is None:
        return None
    folder = environment_folder(engine)
    return folder if python_of(folder).exists() else None


def missing_engines(studies: Iterable[Study]) -> dict[str, str]:
    """Engines of the studies that are not installed, each with a message that says what to do."""
    named = dict.fromkeys(study.requests.engine for study in studies if study.requests is not None)
    return {engine: _not_prepared(engine) for engine in named if find_environment(engine) is None}


def _not_prepared(engine: str) -> str:
    return f"{engine} is not installed: `epochcost engine {engine}` installs it"


def interpreter(trial: Trial) -> Path | None:
    """The Python of a trial's engine, if it has one; raises CapabilityError if not installed."""
    if not isinstance(trial.work, Requests):
        return None
    folder = find_environment(trial.runtime)
    if folder is None:
        raise CapabilityError(_not_prepared(trial.runtime))
    return python_of(folder)


def install_engine(engine: str, say: Say) -> Path:
    """Install an engine's environment unless it exists, and return the environment's folder.

    Several processes may install at once. Raises CapabilityError without disk space, without a
    network, or without a wheel for this Python.
    """
    present = find_environment(engine)
    if present is not None:
        say(f"{engine}: already installed")
        return present
    say(f"{engine}: fetching {', '.join(requirements(engine))} and their dependencies")
    # Separate, since an engine's ONNX Runtime for CPUs would replace the package for GPUs.
    with workplace(environments_folder(), _MAKING) as folder:
        environment = folder / "environment"
        _create(environment, engine)
        _install(environment, folder / "constraints.txt", engine)
        _require_engine(environment, engine)
        target = environment_folder(engine)
        with locked(environments_folder()):
            if find_environment(engine) is None:
                shutil.rmtree(target, ignore_errors=True)
                # Renamed last, so that other processes see a complete environment or none.
                environment.rename(target)
    say(f"{engine}: ready; {target}")
    return target


def _create(environment: Path, engine: str) -> None:
    # -I, here and below, excludes PYTHONPATH and the user's packages.
    completed = run_captured([sys.executable, "-I", "-m", "venv", str(environment)])
    if completed.returncode != 0:
        raise CapabilityError(
            f"{engine}: expected a virtual environment of {sys.executable}, got"
            f"{_last_lines(completed)}\nIf ensurepip is missing, install the system's package "
            "(Debian and Ubuntu: python3-venv)"
        )


def _install(environment: Path, constraints: Path, engine: str) -> None:
    constraints.write_text(
        "".join(f"{line}\n" for line in _installed_version_constraints()), encoding="utf-8"
    )
    pip = [str(python_of(environment)), "-I", "-m", "pip", "install", *_PIP_OPTIONS]
    completed = run_captured([*pip, "--constraint", str(constraints), *requirements(engine)])
    if completed.returncode != 0:
        wheel = f"Python {platform.python_version()} on {sys.platform} {platform.machine()}"
        raise CapabilityError(
            f"{engine}: expected this package and those of a worker from pip's index, got"
            f"{_last_lines(completed)}\nNothing was installed. Check the network and the index "
            f"(`pip config list`), and that {engine} has a wheel for {wheel}; then run it again"
        )


def _installed_version_constraints() -> Iterator[str]:
    for distribution in importlib.metadata.distributions():
        name = distribution.metadata["Name"]
        if name and name not in {*RUNTIMES, "epochcost"}:
            yield f"{name}=={distribution.version}"


def _require_engine(environment: Path, engine: str) -> None:
    completed = run_module(python_of(environment), "epochcost.measure.probe", "engine")
    try:
        software = Software.model_validate_json(completed.stdout)
    except ValidationError:
        raise CapabilityError(
            f"{engine}: expected an engine that works with the packages installed here, got"
            f"{_last_lines(completed)}\nNothing was installed. Another release may work"
        ) from None
    require_runtime(engine, software.runtime)


def _last_lines(completed: subprocess.CompletedProcess[str]) -> str:
    text = f"{completed.stdout}\n{completed.stderr}"
    return last_lines(text, _LAST_LINES) or f" status {completed.returncode}"
