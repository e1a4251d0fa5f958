"""The payload of a launch, installed on this machine in a home of the test's own."""

from __future__ import annotations

import subprocess
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from epochcost.fleet.payload import build_payload, install, run_script
from epochcost.fleet.shell import EngineError, Shell
from epochcost.measure.environment import code_revision
from epochcost.specs.target import Target
from remote_homes import NEEDS_RSYNC, offline_environment
from tiny_project import write_tiny_project

ROOT = Path(__file__).parents[2]
HERE = Shell("box", None)


def target(**keys: object) -> Target:
    """A target on this machine."""
    machine = {"id": "box", "hardware": "local", "price": "own", "folder": "our cells"}
    return Target.model_validate(machine | {"engine": {"name": "ssh", "host": "box"}} | keys)


@pytest.fixture(name="project", scope="module")
def project_fixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny project."""
    return write_tiny_project(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(name="payload", scope="module")
def payload_fixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the payload."""
    folder = tmp_path_factory.mktemp("payload")
    build_payload(folder)
    return folder


def wheel_of(payload: Path) -> Path:
    """The wheel in a folder."""
    (wheel,) = payload.glob("*.whl")
    return wheel


@pytest.fixture(name="home")
def home_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home of the user."""
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_equal_code_is_an_equal_wheel(payload: Path, tmp_path: Path) -> None:
    """So a second launch installs nothing."""
    build_payload(tmp_path)
    assert wheel_of(tmp_path).read_bytes() == wheel_of(payload).read_bytes()


def test_the_wheel_contains_the_code_and_its_revision(payload: Path) -> None:
    """Results of a target name the commit that measured."""
    with zipfile.ZipFile(wheel_of(payload)) as archive:
        names = set(archive.namelist())
        noted = archive.read("epochcost/revision.txt").decode().split()
    for root, package in (("runner", "epochcost"), ("runner/onnxstep", "onnxstep")):
        tracked = subprocess.run(
            ["git", "ls-files", f"{package}/*.py"],
            cwd=ROOT / root, capture_output=True, text=True, check=True,
        ).stdout.split()  # fmt: skip
        assert {path for path in tracked if "/template/" not in path} <= names
    revision = code_revision()
    assert revision is not None
    assert noted == revision.note().split()
    assert not [name for name in names if "docs/data" in name]


@pytest.mark.slow
@NEEDS_RSYNC
def test_it_runs_without_a_network(home: Path, payload: Path, project: Path) -> None:
    """If all packages are there, pip asks no index; specs there are exactly the project's."""
    offline_environment(home / "our cells/box/venv")
    there = home / "our cells/box/project"
    stale, result = there / "specs/prices/stale.toml", there / "docs/data/results/a/b.json"
    for path in (stale, result):
        path.parent.mkdir(parents=True)
        path.write_text("no TOML")
    box = target(setup=["export PIP_NO_INDEX=1"])
    install(HERE, box, payload, project)
    printed = HERE.run(run_script(box, ("plan", "--study", "brief")))
    assert "3 trials on local" in printed
    assert not stale.exists()
    assert result.exists()
    imported = (
        HERE.run(f"cd 'our cells/box'; unset PYTHONPATH; venv/bin/python -c '{_IMPORTED}'")
        .strip()
        .split("\t")
    )
    assert Path(imported[0]).is_relative_to(home)
    assert imported[1:] == [str(code_revision())]


_IMPORTED = (
    "import epochcost; from epochcost.measure.environment import code_revision; "
    "print(epochcost.__file__, code_revision(), sep=chr(9))"
)


@NEEDS_RSYNC
def test_a_second_installation_is_skipped(home: Path, payload: Path, project: Path) -> None:
    """The digest of the code and of its packages decides."""
    write_python(home, 'echo "$@" >>"$HOME/calls"')
    for runtime in ("onnxruntime==1.31.1", "onnxruntime==1.31.1", "onnxruntime==1.30.0"):
        install(HERE, target(runtime=runtime), payload, project)
    calls = (home / "calls").read_text()
    assert calls.count("--force-reinstall") == 2
    assert [call.split()[-1] for call in calls.splitlines() if "onnxruntime" in call] == [
        "onnxruntime==1.31.1",
        "onnxruntime==1.30.0",
    ]


@NEEDS_RSYNC
def test_a_repeated_installation_waits_for_the_first(
    home: Path, payload: Path, project: Path
) -> None:
    """The first may go on after a lost connection; then the second has nothing to do."""
    write_python(
        home, '[ "$3" = --version ] || { echo begin; sleep 0.3; echo end; } >>"$HOME/calls"'
    )
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda _: install(HERE, target(), payload, project), range(3)))
    assert (home / "calls").read_text() == 2 * "begin\nend\n"


def write_python(home: Path, script: str) -> None:
    """Write a Python whose pip runs a script instead."""
    python = home / "our cells/box/venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)


@NEEDS_RSYNC
def test_a_target_without_python_is_named(home: Path, payload: Path, project: Path) -> None:
    """The error says which Python is expected and how to get it."""
    programs = home / "programs"
    programs.mkdir()
    for name in ("mkdir", "cat", "flock", "rsync"):
        (programs / name).symlink_to(f"/usr/bin/{name}")
    (home / ".profile").write_text(f"PATH={programs}\n")
    with pytest.raises(EngineError, match=r"target box: expected Python 3.11 or newer there"):
        install(HERE, target(), payload, project)


@NEEDS_RSYNC
def test_a_failing_setup_stops_the_installation(home: Path, payload: Path, project: Path) -> None:
    """The message of the user's command is the reason."""
    with pytest.raises(EngineError, match="no such module: python/9"):
        install(HERE, target(setup=["echo no such module: python/9 >&2; false"]), payload, project)
    assert not (home / "our cells/box/venv").exists()
