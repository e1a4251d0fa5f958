"""Making the environment of a runtime: the one place from which packages are fetched.

``venv`` and ``pip`` of the interpreter at hand do it, pip with the index of the user's own
configuration. An environment is made beside its place, proved and then moved there in one step:
whoever looks sees a whole one or none, and two that make the same do not disturb each other.
"""

from __future__ import annotations

import importlib.metadata
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from pydantic import ValidationError

from epochcost.errors import CapabilityError
from epochcost.execute.runtimes import (
    RuntimeEnvironment,
    environment_folder,
    environments_folder,
    find_environment,
    lock_file,
    python_of,
    requirements,
    write_description,
)
from epochcost.measure.runtime import RUNTIMES, RuntimeSupport, require_runtime
from epochcost.measure.start import run_module
from epochcost.results.files import locked, workplace

Say = Callable[[str], None]

_MAKING = ".making-"
_LAST_LINES = 6
_PIP_OPTIONS = ("--quiet", "--no-input", "--disable-pip-version-check", "--only-binary", ":all:")


def install_runtime(runtime: str, say: Say) -> RuntimeEnvironment:
    """The environment of a runtime, made where it is not there; ``say`` hears what is done.

    Raises CapabilityError where it cannot be made: no room, no network, no wheel for this Python.
    """
    found = find_environment(runtime)
    if found is not None:
        say(f"{runtime}: is there")
        return found
    say(f"{runtime}: fetching {', '.join(requirements(runtime))} and what they need")
    with workplace(environments_folder(), _MAKING) as folder:
        environment = folder / "environment"
        _create(environment, runtime)
        _install(environment, folder / "constraints.txt", runtime)
        support = _ask(environment, runtime)
        write_description(environment, support)
        _place(environment, environment_folder(runtime), runtime)
    made = find_environment(runtime)
    assert made is not None, "an environment that was placed is there"
    say(f"{runtime}: ready, reads opset {support.opset}; {made.folder}")
    return made


def _create(environment: Path, runtime: str) -> None:
    # -I here and below: neither PYTHONPATH nor the user's own packages belong into it.
    done = _run([sys.executable, "-I", "-m", "venv", str(environment)])
    if done.returncode != 0:
        raise CapabilityError(
            f"{runtime}: expected a virtual environment of {sys.executable}, got"
            f"{_last_lines(done)}\nWhere ensurepip is missing, install the system's package of it "
            "(Debian and Ubuntu: python3-venv)"
        )


def _install(environment: Path, constraints: Path, runtime: str) -> None:
    constraints.write_text("".join(f"{one}\n" for one in _constraints()), encoding="utf-8")
    asked = ["--constraint", str(constraints), *requirements(runtime)]
    if (lock := lock_file(runtime)) is not None:
        asked = ["--require-hashes", "--requirement", str(lock)]
    pip = [str(python_of(environment)), "-I", "-m", "pip", "install", *_PIP_OPTIONS]
    done = _run([*pip, *asked])
    if done.returncode != 0:
        wheel = f"Python {platform.python_version()} on {sys.platform} {platform.machine()}"
        raise CapabilityError(
            f"{runtime}: expected this package and what a worker needs from pip's index, got"
            f"{_last_lines(done)}\nNothing was kept. Is the network there (`pip config list` names "
            f"the index), and has {runtime} a wheel for {wheel}? Then run the command again"
        )


def _constraints() -> Iterator[str]:
    """All that is installed here, so that what a worker's packages need is the same there too."""
    for found in importlib.metadata.distributions():
        name = found.metadata["Name"]
        if name and name not in {*RUNTIMES, "epochcost"}:
            yield f"{name}=={found.version}"


def _ask(environment: Path, runtime: str) -> RuntimeSupport:
    """What the new environment really runs; raises CapabilityError where it is not the runtime."""
    package = runtime.partition("==")[0]
    done = run_module(python_of(environment), "epochcost.measure.probe", "support", package)
    try:
        support = RuntimeSupport.model_validate_json(done.stdout)
    except ValidationError:
        raise CapabilityError(
            f"{runtime}: expected a runtime that works with the packages installed here, got"
            f"{_last_lines(done)}\nNothing was kept. Releases before 1.19 need NumPy 1, and a "
            "worker NumPy 2; another release may work"
        ) from None
    require_runtime(runtime, support.software.runtime)
    return support


def _place(environment: Path, target: Path, runtime: str) -> None:
    """Move it to its place; whoever was faster is left, what is not whole is replaced."""
    with locked(environments_folder()):
        if find_environment(runtime) is None:
            shutil.rmtree(target, ignore_errors=True)
            environment.rename(target)


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, capture_output=True, encoding="utf-8", errors="replace", check=False
    )


def _last_lines(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line for line in f"{done.stdout}\n{done.stderr}".splitlines() if line.strip()]
    return "".join(f"\n  {line}" for line in lines[-_LAST_LINES:]) or f" status {done.returncode}"
