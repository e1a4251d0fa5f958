"""The user's own machines behind a real sshd: detached jobs, lost connections, and refusals."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from crowding import crowded
from epochcost.fleet.engine import Engine, JobState
from epochcost.fleet.payload import build_payload
from epochcost.fleet.shell import EngineError
from remote_homes import NEEDS_SSHD, Machines, make_machines, offline_environment
from target_tariffs import tariff_of
from tiny_project import OWNED_PRICE, write_tiny_project

pytestmark = [NEEDS_SSHD, pytest.mark.slow]
_BOX = """
id = "{name}"
name = "A box"
provider = "our cellar"
detected = true
source = "made up for a test"
"""
_TARGET = """
id = "{name}"
hardware = "{name}"
price = "own-{name}"
limit_minutes = 5
folder = "our cells"
setup = ["export PIP_NO_INDEX=1", "sleep 10"] # no trial ends before it is polled
engine = {{ name = "ssh", host = "{name}" }}
"""
TRIALS = 3
_SECRET = "of-the-test-only"  # noqa: S105


@pytest.fixture(name="folder", scope="module")
def folder_fixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a project of two boxes, and the payload."""
    folder = tmp_path_factory.mktemp("fleet")
    project = write_tiny_project(folder / "project")
    for kind in ("prices", "targets"):
        (project / "specs" / kind).mkdir()
    for name in ("box-a", "box-b"):
        (project / f"specs/hardware/{name}.toml").write_text(_BOX.format(name=name))
        (project / f"specs/prices/own-{name}.toml").write_text(
            OWNED_PRICE.replace('"own"', f'"own-{name}"').replace('"local"', f'"{name}"', 1)
        )
        (project / f"specs/targets/{name}.toml").write_text(_TARGET.format(name=name))
    build_payload(folder / "payload")
    return folder


@pytest.fixture(name="machines", scope="module")
def machines_fixture(folder: Path) -> Iterator[Machines]:
    """Two machines behind an sshd, with all packages of the program."""
    machines = make_machines(folder, ("box-a", "box-b"))
    for name in ("box-a", "box-b"):
        offline_environment(machines.home(name) / "our cells" / name / "venv")
    machines.start()
    yield machines
    machines.stop()


@pytest.fixture(autouse=True)
def answering_fixture(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machines answer, and the ssh of the test is first on the path."""
    monkeypatch.setenv("PATH", f"{machines.folder}/bin:{os.environ['PATH']}")
    machines.trust("host_key")
    if machines.server is None:
        machines.start()


def engine(machines: Machines, name: str, **keys: object) -> Engine:
    """The engine of a machine."""
    spec = {"id": name, "hardware": name, "folder": "our cells"}
    host = {"engine": {"name": "ssh", "host": name}, "setup": ["export PIP_NO_INDEX=1"]}
    tariff = tariff_of(**(spec | host | keys))
    return Engine(tariff, machines.folder / "payload", machines.folder / "project")


def short_jobs(machines: Machines, name: str, **keys: object) -> Engine:
    """The engine of a machine whose program runs its arguments, for jobs of any length."""
    place = machines.home(name) / "short jobs" / name
    for part in ("venv/bin", "project", "jobs"):
        (place / part).mkdir(parents=True, exist_ok=True)
    python = place / "venv/bin/python"
    python.write_text('#!/bin/sh\nshift 2\nexec "$@"\n')
    python.chmod(0o755)
    return engine(machines, name, folder="short jobs", **keys)


def begun(box: Engine, text: str) -> str:
    """Start a job that runs a script; returns its name."""
    job = f"job-{time.monotonic_ns()}"
    box.submit(job, ("bash", "-c", text))
    return job


def ended(box: Engine, job: str) -> JobState:
    """The state of a job after its end."""
    while True:
        state = box.poll(job)
        if state.state != "running":
            return state
        time.sleep(0.2)


def test_a_study_survives_lost_connections_and_a_killed_launch(machines: Machines) -> None:
    """Each result is measured and collected once, although connections and the launch end."""
    first = begin(machines, "--target", "box-b")
    read_until(first, "queued")
    machines.stop()
    read_until(first, "cannot be reached")
    machines.start()
    read_until(first, "done")
    read_until(first, "queued")
    first.kill()
    first.communicate()
    second = begin(machines)
    table, events = second.communicate()
    assert second.returncode == 0, events
    assert "; 0 trials left" in table
    results = machines.folder / "project/docs/data/results"
    for name in ("box-a", "box-b"):
        assert len(list((results / name).glob("*.json"))) == TRIALS
        jobs = machines.home(name) / "our cells" / name / "jobs"
        codes = [(job / "exit").read_text() for job in jobs.iterdir()]
        assert codes.count("0\n") == TRIALS
        # The second launch ends the job that the killed launch left.
        assert len(codes) == TRIALS + (name == "box-b")
    files = {path: path.stat().st_mtime_ns for path in results.rglob("*.json")}
    third = begin(machines)
    table, _ = third.communicate()
    assert third.returncode == 0
    assert f"0 trials to measure, {2 * TRIALS} done already" in table
    assert {path: path.stat().st_mtime_ns for path in results.rglob("*.json")} == files


def begin(machines: Machines, *options: str) -> subprocess.Popen[str]:
    """Start a launch of the brief study on both boxes."""
    program = [sys.executable, "-m", "epochcost", "launch", "--study", "brief", *options]
    return subprocess.Popen(
        program, cwd=machines.folder / "project", text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def read_until(launch: subprocess.Popen[str], pattern: str) -> None:
    """Read a launch's progress up to a line with a pattern."""
    assert launch.stderr is not None
    lines = []
    for line in launch.stderr:
        lines.append(line)
        if re.search(pattern, line.rstrip()):
            return
    pytest.fail(f"no line with {pattern} in\n{''.join(lines)}")


def test_a_call_during_a_lost_connection_may_be_repeated(machines: Machines) -> None:
    """The error of the call is a passing one; the job on the machine goes on."""
    box = short_jobs(machines, "box-a")
    job = begun(box, "sleep 4; echo no room; exit 3")
    (machines.home("box-a") / ".profile").write_text("sleep 20\n")
    cut = threading.Timer(1, machines.stop)
    cut.start()
    with pytest.raises(
        EngineError, match=r"target box-a \(box-a\): the connection was lost"
    ) as lost:
        box.poll(job)
    cut.join()
    assert lost.value.passing
    (machines.home("box-a") / ".profile").unlink()
    machines.start()
    assert ended(box, job) == JobState("failed", "exit code 3")
    assert box.logs(job) == "no room\n"


def test_states_of_jobs(machines: Machines) -> None:
    """Each job has its own state, under noise of a profile."""
    box = short_jobs(machines, "box-b")
    (machines.home("box-b") / ".profile").write_text("echo welcome; echo running\n")
    assert ended(box, begun(box, "true")) == JobState("ended")
    assert ended(box, begun(box, "echo 'a  b'; false")) == JobState("failed", "exit code 1")
    running = begun(box, "sleep 30")
    assert box.poll(running) == JobState("running")
    box.cancel(running)
    assert box.poll(running).state == "failed"
    assert box.poll("absent").state == "lost"
    box.limit_seconds = 1
    late = begun(box, "sleep 30")
    assert ended(box, late) == JobState("failed", "ended at the target's limit_minutes")
    (machines.home("box-b") / ".profile").unlink()


def test_cancel_ends_all_processes_of_a_job(machines: Machines) -> None:
    """Also those that it started; cancel may be repeated, and precede a delayed submission."""
    box = short_jobs(machines, "box-a")
    job = begun(box, "sleep 3333 & sleep 3334")
    wait_until(lambda: len(sleeping("3333", "3334")) == 2)
    box.cancel(job)
    wait_until(lambda: not sleeping("3333", "3334"))
    box.cancel(job)
    box.cancel("absent")
    with pytest.raises(EngineError, match="absent"):
        box.submit("absent", ("true",))


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until something is so; fails if it is not so in time."""
    end = time.monotonic() + crowded(60)
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def sleeping(*durations: str) -> list[psutil.Process]:
    """The processes that sleep for some of the durations."""
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if process.info["cmdline"] in [["sleep", duration] for duration in durations]
    ]


def test_a_killed_job_is_lost(machines: Machines) -> None:
    """As after a restart of the machine: its lock is free and it has no exit code."""
    box = short_jobs(machines, "box-a")
    job = begun(box, "sleep 3335")
    place = machines.home("box-a") / "short jobs/box-a/jobs" / job
    watch = psutil.Process(int((place / "pid").read_text()))
    wait_until(lambda: len(sleeping("3335")) == 1)
    children = watch.children()
    watch.kill()
    for timeout in children:
        timeout.terminate()
    assert ended(box, job).state == "lost"


def test_a_secret_reaches_the_job_only(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    """No command line, log, reason or error contains its value."""
    monkeypatch.setenv("CELL_TOKEN", _SECRET)
    box = short_jobs(machines, "box-a", secrets=["CELL_TOKEN"])
    box.check()
    job = begun(box, 'echo "$CELL_TOKEN" | wc -c; echo "token: $CELL_TOKEN"; sleep 2; false')
    lines = [
        " ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"])
    ]
    assert not [line for line in lines if _SECRET in line]
    assert ended(box, job) == JobState("failed", "exit code 1")
    assert box.logs(job) == f"{len(_SECRET) + 1}\ntoken: $CELL_TOKEN\n"
    with pytest.raises(EngineError, match=r"no \$CELL_TOKEN here"):
        box.shell.run(f"echo no {_SECRET} here >&2; false")
    kept = [path for path in machines.home("box-a").rglob("*") if path.is_file()]
    assert not [
        path for path in kept if path.name != "log" and _SECRET.encode() in path.read_bytes()
    ]


def test_a_changed_host_key_is_refused(machines: Machines) -> None:
    """The error says how to replace the key, and is not repeated."""
    machines.trust("other_key")
    with pytest.raises(
        EngineError, match="its host key differs from the key in known_hosts"
    ) as wrong:
        engine(machines, "box-a").check()
    assert not wrong.value.passing


def test_an_unknown_host_key_is_refused(machines: Machines) -> None:
    """The user compares the fingerprint."""
    (machines.folder / "known_hosts").write_text("")
    with pytest.raises(EngineError, match="its host key is unknown: run `ssh box-a` once"):
        engine(machines, "box-a").check()


def test_a_refused_key_is_named(machines: Machines) -> None:
    """The error says what must work first."""
    keys = machines.folder / "authorized_keys"
    text = keys.read_text()
    keys.write_text(text.splitlines()[1])
    with pytest.raises(EngineError, match="it refuses the key: `ssh box-a` must work without"):
        engine(machines, "box-a").check()
    keys.write_text(text)


def test_a_machine_without_rsync_is_named(machines: Machines) -> None:
    """The error lists the programs to install there."""
    programs = machines.home("box-b") / "programs"
    programs.mkdir()
    for name in ("flock", "timeout"):
        (programs / name).symlink_to(f"/usr/bin/{name}")
    (machines.home("box-b") / ".profile").write_text(f"PATH={programs}\n")
    with pytest.raises(EngineError, match="expected these programs there: rsync, setsid: install"):
        engine(machines, "box-b").check()
    (machines.home("box-b") / ".profile").unlink()


def test_a_full_disk_is_named(machines: Machines) -> None:
    """The error names the key that moves the folder to another disk."""
    place = machines.home("box-a") / "full disk/box-a"
    place.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root can mount a small disk")
    try:
        with pytest.raises(EngineError, match="its disk is full: free some space there, or name"):
            engine(machines, "box-a", folder="full disk").start()
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)
