"""The payload of a launch: the running code as a wheel, and the specs and models of a project.

A target measures the code that runs here, in a folder with ``venv/``, ``project/`` and ``jobs/``.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import zipfile
from collections.abc import Iterator, Sequence
from importlib.metadata import distribution
from pathlib import Path

import epochcost
import onnxstep
from epochcost.fleet.shell import Shell
from epochcost.measure.environment import CODE, NOTE, code_revision
from epochcost.specs.target import Target

RESULTS = "project/docs/data/results"
# Parts that no run reads: the docs and results that the package shows outside a project.
_LEFT_OUT = {"__pycache__", "docs", "site_templates", "template"}
_WHEEL = "Wheel-Version: 1.0\nGenerator: epochcost\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
# An installation goes on after a lost connection, so a repetition waits for its lock.
# The default Python may be old, so others follow, the newest first.
_INSTALL = """\
exec 9>install.lock && flock 9 || exit
[ "$(cat venv/payload 2>/dev/null)" = {digest} ] && exit 0
if ! venv/bin/python -m pip --version >/dev/null 2>&1; then
  for python in python3 python3.14 python3.13 python3.12 python3.11 ""; do
    "$python" -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && break
  done
  [ "$python" ] || {{ echo "expected Python 3.11 or newer there, with its module venv: install it \
(python3-venv on Debian), or add a command such as 'module load python' to the target's setup" >&2
    exit 3; }}
  "$python" -m venv venv || exit
fi
pip="venv/bin/python -m pip install --quiet --disable-pip-version-check"
{packages} && $pip --no-deps --force-reinstall {wheel} && echo {digest} >venv/payload
"""


def build_payload(folder: Path) -> None:
    """Write the wheel of the running code into a folder, and make the folder if it is missing."""
    origin = distribution("epochcost")
    notes = f"epochcost-{origin.version}.dist-info"
    metadata = origin.read_text("METADATA") or ""
    files: dict[str, str | bytes] = {f"{notes}/WHEEL": _WHEEL, f"{notes}/METADATA": metadata}
    if revision := code_revision():
        files[f"{CODE.name}/{NOTE}"] = revision.note()
    for package in (epochcost, onnxstep):
        files.update(_package_files(Path(*package.__path__)))
    files[f"{notes}/RECORD"] = "".join(f"{name},,\n" for name in files)
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"epochcost-{origin.version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            # ZipInfo's fixed time makes equal code an equal wheel.
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)


def _package_files(root: Path) -> Iterator[tuple[str, bytes]]:
    for folder, folders, names in os.walk(root, followlinks=True):
        folders[:] = sorted(set(folders) - _LEFT_OUT)
        for path in (Path(folder, name) for name in sorted(names)):
            yield str(path.relative_to(root.parent)), path.read_bytes()


def install(shell: Shell, target: Target, payload: Path, project: Path) -> None:
    """Copy the payload to a target and install it, unless this code is installed already.

    Raises EngineError if the target lacks Python, disk space or a package.
    """
    (wheel,) = payload.glob("*.whl")
    seconds = 60 * target.setup_minutes
    shell.send([wheel], target.place, seconds)
    parts = (project / name for name in ("specs", "models"))
    shell.send([path for path in parts if path.exists()], f"{target.place}/project", seconds)
    extra = "gpu" if target.provider == "cuda" else "run"
    # Installed in this order: a runtime may differ from the version that the extra names.
    packages = [f"{wheel.name}[{extra}]", *filter(None, [target.runtime])]
    content = wheel.read_bytes() + repr(packages).encode()
    script = _INSTALL.format(
        digest=hashlib.sha256(content).hexdigest()[:16],
        wheel=wheel.name,
        packages=" && ".join(f"$pip {shlex.quote(package)}" for package in packages),
    )
    shell.run(f"{_setup_script(target)}\nmkdir -p {RESULTS} jobs\n{script}", seconds=seconds)


def run_script(target: Target, arguments: Sequence[str], options: str = "") -> str:
    """A bash script that runs `epochcost` with ``arguments`` on a target.

    ``options`` follow the arguments without quotes, so bash expands variables in them.
    """
    program = shlex.join(("../venv/bin/python", "-m", "epochcost", *arguments))
    return f"{_setup_script(target)}\ncd project && exec {program} {options}\n"


def _setup_script(target: Target) -> str:
    # The setup runs in the user's home; what follows this script runs in the target's folder.
    setup = (f"{{ {command}\n}} || exit" for command in target.setup)
    # Modules of clusters set PYTHONPATH for their own Python.
    place = shlex.quote(target.place)
    return "\n".join(("cd", *setup, f"cd && cd {place} || exit", "unset PYTHONPATH"))
