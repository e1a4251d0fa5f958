"""Start modules of epochcost in separate processes, with this or another interpreter.

``python -I start.py LIBRARY MODULE ARGUMENT…`` starts a module under an interpreter in which
epochcost and onnxstep need not be installed. So this file uses only the standard library.
"""

from __future__ import annotations

import importlib.util
import runpy
import subprocess
import sys
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


def start(library: str, module: str, *arguments: str) -> None:
    """Run a module of epochcost as the main program; ``library`` is the folder of onnxstep."""
    for folder in (Path(library), _PACKAGE):
        _load(folder)
    sys.argv[1:] = arguments
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _load(folder: Path) -> None:
    # The folder's parent stays off the import path: if it is site-packages, imports would find the
    # runtime of epochcost's own environment.
    spec = importlib.util.spec_from_file_location(
        folder.name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None, "a file that exists has a spec"
    assert spec.loader is not None, "a source file has a loader"
    package = importlib.util.module_from_spec(spec)
    sys.modules[folder.name] = package
    spec.loader.exec_module(package)


def module_command(python: Path | None, module: str, *arguments: str) -> list[str]:
    """The command that runs a module of this package under ``python`` (None: this interpreter).

    Another interpreter needs all packages that the module imports, except epochcost and onnxstep.
    """
    if python is None:
        # -P, so that nothing is imported from the user's current folder.
        return [sys.executable, "-P", "-m", module, *arguments]
    # -I is -P without PYTHONPATH, whose folders would come before the environment's packages.
    import onnxstep.errors  # noqa: PLC0415 - not loaded yet if this file is the script

    library = str(Path(onnxstep.errors.__file__).parent)
    return [str(python), "-I", __file__, library, module, *arguments]


def run_module(
    python: Path | None, module: str, *arguments: str, timeout_seconds: float | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a module in another process; only a time-out raises (subprocess.TimeoutExpired)."""
    return run_captured(module_command(python, module, *arguments), timeout_seconds)


def run_captured(
    command: list[str], timeout_seconds: float | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command without input; its output is text. A time-out raises TimeoutExpired."""
    return subprocess.run(
        command,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=timeout_seconds,
        stdin=subprocess.DEVNULL,
        check=False,
    )


def last_lines(text: str, count: int) -> str:
    """The last lines of a text that are not empty, each on a new line and indented."""
    lines = [line for line in text.splitlines() if line.strip()]
    return "".join(f"\n  {line}" for line in lines[-count:])


def last_error_line(process: subprocess.CompletedProcess[str]) -> str:
    """The last line of a process's standard error, or "no output"."""
    lines = process.stderr.strip().splitlines()
    return lines[-1] if lines else "no output"


if __name__ == "__main__":
    start(*sys.argv[1:])
