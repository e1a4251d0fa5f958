"""Jobs of a real Slurm with two nodes: their constraints, failures and ends, and lost nodes."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from crowding import crowded
from epochcost.fleet.engine import JobState, State
from epochcost.fleet.ledger import FOLDER
from epochcost.fleet.shell import EngineError, Shell
from epochcost.fleet.slurm import SlurmEngine
from remote_homes import NEEDS_RSYNC, NEEDS_SSHD, make_machines, offline_environment
from slurm_cluster import NEEDS_SLURM, SlurmCluster, running_cluster
from sound_results import sound_results
from target_tariffs import tariff_of
from tiny_project import price_text, write_tiny_project

pytestmark = [NEEDS_SLURM, NEEDS_RSYNC, pytest.mark.slow]
_NODE = """
id = "{name}"
name = "A node"
provider = "our cluster"
detected = true
source = "made up for a test"
"""
_ONE_FILE = 'mkdir -p "$1/node-a"; echo {} >"$1/node-a/part.json"'


_TARGET = """
id = "{name}"
hardware = "{name}"
price = "{name}-11-01"
limit_minutes = 5
folder = "our cells"
setup = ["export PIP_NO_INDEX=1", "{hold}"]
engine = {{ name = "slurm", options = ["--constraint={constraint}"] }}
"""
_LAUNCH = (
    "from epochcost.cli.app import main; from epochcost.fleet import station; "
    "station.POLL_SECONDS = 1; main()"
)
# Jobs wait as long as the test wants.
_HOLD = "while [ $SLURM_JOB_ID ] && [ -e ~/hold ]; do sleep 1; done"


@pytest.fixture(name="folder", scope="module")
def folder_fixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a project of two kinds of node, and a home on all nodes."""
    folder = tmp_path_factory.mktemp("slurm")
    project = write_tiny_project(folder / "project")
    for kind in ("prices", "targets"):
        (project / "specs" / kind).mkdir()
    for name, constraint in (("node-a", "both"), ("node-b", "n2-only")):
        target = _TARGET.format(name=name, constraint=constraint, hold=_HOLD)
        (project / f"specs/hardware/{name}.toml").write_text(_NODE.format(name=name))
        (project / f"specs/prices/{name}.toml").write_text(price_text(name, "1"))
        (project / f"specs/targets/{name}.toml").write_text(target)
    (folder / "home").mkdir()
    return folder


@pytest.fixture(name="cluster", scope="module")
def cluster_fixture(folder: Path) -> Iterator[SlurmCluster]:
    """The cluster."""
    with running_cluster(folder / "cluster") as cluster:
        yield cluster


@pytest.fixture(name="home", autouse=True)
def home_fixture(
    folder: Path, cluster: SlurmCluster, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """The home of the user, with an empty profile; Slurm's commands reach the cluster."""
    home = folder / "home"
    for name, value in cluster.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOME", str(home))
    yield home
    (home / ".profile").unlink(missing_ok=True)
    shutil.rmtree(home / "bin", ignore_errors=True)


def short_jobs(
    folder: Path, constraint: str, home: str = "home", options: tuple[str, ...] = (), **keys: object
) -> SlurmEngine:
    """An engine of nodes with a feature whose program runs its arguments, for any jobs."""
    place = folder / home / "our cells/short"
    (place / "venv/bin").mkdir(parents=True, exist_ok=True)
    for name in ("project/docs/data/results", "jobs"):
        (place / name).mkdir(parents=True, exist_ok=True)
    python = place / "venv/bin/python"
    python.write_text('#!/bin/sh\nshift 2\nexec "$@"\n')
    python.chmod(0o755)
    spec = {"id": "short", "hardware": "node-a", "folder": "our cells"}
    chosen = [f"--constraint={constraint}", *options]
    nodes = {"engine": {"name": "slurm", "options": chosen} | keys}
    return SlurmEngine(tariff_of(**spec, **nodes), folder, folder)


def begun(nodes: SlurmEngine, text: str, limit_seconds: int = 60) -> str:
    """Start a job that runs a script, whose $1 is the folder of its results; returns its name."""
    job = f"job-{time.monotonic_ns()}"
    nodes.limit_seconds = limit_seconds
    nodes.submit(job, ("bash", "-c", text))
    return job


def await_states(nodes: SlurmEngine, *expected: tuple[str, State]) -> tuple[JobState, ...]:
    """The states of jobs when they are as expected; fails if they are not so in time."""
    end = time.monotonic() + crowded(90)
    while True:
        states = tuple(nodes.poll(job) for job, _ in expected)
        if [state.state for state in states] == [state for _, state in expected]:
            return states
        assert time.monotonic() < end, (states, [nodes.logs(job) for job, _ in expected])
        time.sleep(0.5)


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until something is so."""
    end = time.monotonic() + crowded(90)
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.2)


def test_a_launch_survives_its_own_end_and_that_of_a_node(
    folder: Path, cluster: SlurmCluster, home: Path
) -> None:
    """Two kinds of node measure a study; every cell is measured and collected once.

    The second launch ends the jobs of the first, which is killed; a job whose node is killed is
    repeated on another node of its kind.
    """
    environments = [home / f"our cells/{name}/venv" for name in ("node-a", "node-b")]
    offline_environment(environments[0])
    shutil.copytree(*environments, symlinks=True)
    (home / "hold").touch()
    with begun_launch(folder):
        wait_until(lambda: len(running(cluster)) == 2)
        jobs = running(cluster)
    with begun_launch(folder) as second:
        wait_until(lambda: log_of(folder).count(": running") == 2)
        earlier, jobs = jobs, running(cluster)
        assert not earlier.keys() & jobs.keys()
        # The jobs of node-b run on n2 only.
        lost = next(job for job, node in jobs.items() if node == "n1")
        cluster.kill_node("n1")
        wait_until(lambda: lost not in running(cluster))
        (home / "hold").unlink()
        wait_until(lambda: "node-a: tiny training" in log_of(folder))
        cluster.start_node("n1")
        code = second.wait(crowded(200))
    while code == 1 and "expected" in log_of(folder):
        # Checks refuse a result that a crowded machine has disturbed.
        for place in home.glob("our cells/node-*/project/docs/data/results"):
            shutil.rmtree(place)
        with begun_launch(folder) as another:
            code = another.wait(crowded(200))
    assert code == 0, log_of(folder)
    cluster.await_idle()
    results = sound_results(folder / "project/docs/data/results")
    assert sorted(result.hardware for result in results) == ["node-a"] * 3 + ["node-b"] * 3
    rows = cluster.run("sacct", "-nXP", "--format=State,NodeList,WorkDir").splitlines()
    ours = [row.split("|")[:2] for row in rows if "cells/node-a" in row]
    assert ours[0][0].startswith("CANCELLED")
    assert ours[1:3] == [["NODE_FAIL", "n1"], ["COMPLETED", "n2"]]
    assert {state for state, _ in ours[3:]} == {"COMPLETED"}
    assert "; 0 trials left" in log_of(folder)
    assert not (folder / "project" / FOLDER / "ledger.json").exists()


@contextlib.contextmanager
def begun_launch(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start `epochcost launch` in the project, with frequent polls; kill it after the block."""
    command = [sys.executable, "-c", _LAUNCH, "launch", "--study", "brief", "--quick"]
    command += ["--cap", "50"]
    with (folder / "launch.log").open("wb") as log:
        launch = subprocess.Popen(command, cwd=folder / "project", stdout=log, stderr=log)
    try:
        yield launch
    finally:
        launch.kill()
        launch.wait()


def log_of(folder: Path) -> str:
    """The messages of the latest launch."""
    return (folder / "launch.log").read_text("utf-8")


def running(cluster: SlurmCluster) -> dict[str, str]:
    """The running jobs, and the node of each."""
    lines = cluster.run("squeue", "--noheader", "--states=RUNNING", "--format=%A %N").splitlines()
    return dict(line.split() for line in lines)


def test_a_job_has_its_node_alone(folder: Path, cluster: SlurmCluster) -> None:
    """It waits for a foreign job on a part of the node, and the next one waits for it."""
    nodes = short_jobs(folder, "n1-only")
    cluster.run(
        *("sbatch", "--job-name=foreign", "--constraint=n1-only", "--ntasks=1"),
        *("--output=/dev/null", "--wrap", "sleep 60"),
    )
    first, second = begun(nodes, "sleep 60"), begun(nodes, "true")
    await_states(nodes, ("foreign", "running"), (first, "queued"), (second, "queued"))
    cluster.run("scancel", "--name=foreign")
    await_states(nodes, (first, "running"), (second, "queued"))
    nodes.cancel(first)
    await_states(nodes, (first, "failed"), (second, "ended"))


def test_failures_are_in_the_log(folder: Path) -> None:
    """A failing command, and one that Slurm's node ends at its limit; results are kept."""
    nodes = short_jobs(folder, "both")
    failing = begun(nodes, "echo no such file; exit 3")
    late = begun(nodes, f"{_ONE_FILE}; sleep 60", limit_seconds=1)
    assert await_states(nodes, (failing, "failed"), (late, "failed")) == (
        JobState("failed", "exit code 3"),
        JobState("failed", "ended at the target's limit_minutes"),
    )
    assert nodes.logs(failing) == "no such file\n"
    place = folder / "home/our cells/short/project/docs/data/results/node-a"
    assert [path.name for path in place.iterdir()] == ["part.json"]


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ("--constraint=nope", "Invalid feature specification"),
        ("--partition=nope", "invalid partition specified: nope"),
        ("--gres=nope", "Invalid generic resource"),
    ],
)
def test_wrong_options_are_refused_before_anything_starts(
    folder: Path, option: str, reason: str
) -> None:
    """The error has Slurm's reason, and the command that shows what there is."""
    wrong = short_jobs(folder, "both", options=(option,))
    with pytest.raises(EngineError, match=rf"target short: Slurm refuses .*{reason}.*sinfo") as no:
        wrong.check()
    assert not no.value.passing


def test_a_job_that_no_node_can_run_fails(folder: Path) -> None:
    """Its limit is above that of the partition, and Slurm would keep it in the queue for ever."""
    nodes = short_jobs(folder, "both")
    job = begun(nodes, "true", limit_seconds=36_000)
    (state,) = await_states(nodes, (job, "failed"))
    assert "Slurm cannot start it (PartitionTimeLimit)" in state.reason
    nodes.cancel(job)
    await_states(nodes, (job, "lost"))


def test_cancel_keeps_results_and_frees_the_node(folder: Path, cluster: SlurmCluster) -> None:
    """A second cancel, and a cancel of a job that waits or never was, do no harm."""
    nodes = short_jobs(folder, "n1-only")
    place = folder / "home/our cells/short/project/docs/data/results/node-a"
    shutil.rmtree(place, ignore_errors=True)
    job = begun(nodes, f"{_ONE_FILE}; touch ~/begun; exec sleep 600")
    waiting = begun(nodes, "true")
    await_states(nodes, (job, "running"), (waiting, "queued"))
    wait_until((folder / "home/begun").exists)
    for each in (waiting, job, job, "absent"):
        nodes.cancel(each)
    assert (place / "part.json").exists()
    cluster.await_idle()
    await_states(nodes, (job, "failed"), (waiting, "lost"))


def test_a_cancelled_job_is_not_submitted_later(
    folder: Path, home: Path, cluster: SlurmCluster
) -> None:
    """Slurm may take a job although sbatch fails; a submission may come after its cancel."""
    nodes = short_jobs(folder, "both")
    break_sbatch(home)
    with pytest.raises(EngineError, match="Slurm does not answer") as broken:
        nodes.submit("doubtful", ("sleep", "600"))
    assert broken.value.passing
    (home / ".profile").unlink()
    assert cluster.run("squeue", "--noheader", "--name=doubtful")
    nodes.cancel("doubtful")
    assert not cluster.run("squeue", "--noheader", "--name=doubtful")
    with pytest.raises(EngineError, match="doubtful"):
        nodes.submit("doubtful", ("sleep", "600"))


def break_sbatch(home: Path) -> None:
    """Let sbatch fail after it has submitted, as if the controller's answer were late."""
    program = home / "bin/sbatch"
    program.parent.mkdir(exist_ok=True)
    error = "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation"
    program.write_text(f'#!/bin/sh\n{shutil.which("sbatch")} "$@"\necho {error} >&2\nexit 1\n')
    program.chmod(0o755)
    (home / ".profile").write_text('PATH="$HOME/bin:$PATH"\n')


@NEEDS_SSHD
def test_jobs_are_submitted_through_ssh(
    folder: Path, cluster: SlurmCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A login node has the commands of Slurm and the folder; this machine has the results."""
    (folder / "machines").mkdir()
    machines = make_machines(folder / "machines", ("login",))
    monkeypatch.setenv("PATH", f"{machines.folder}/bin:{os.environ['PATH']}")
    monkeypatch.delenv("SLURM_CONF")
    settings = [f"export {name}='{value}'" for name, value in cluster.environment.items()]
    (machines.home("login") / ".profile").write_text("\n".join(settings))
    nodes = short_jobs(folder, "both", "machines/homes/login", login="login")
    machines.start()
    try:
        nodes.check()
        job = begun(nodes, f"{_ONE_FILE}; echo done")
        await_states(nodes, (job, "ended"))
        assert nodes.logs(job) == "done\n"
        nodes.collect(tmp_path)
    finally:
        machines.stop()
    assert (tmp_path / "node-a/part.json").read_text() == "{}\n"


def test_a_secret_reaches_the_job_only(
    folder: Path, cluster: SlurmCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slurm shows it nowhere, and no file of the target has it."""
    secret = "of-the-test-only"  # noqa: S105
    monkeypatch.setenv("CELL_TOKEN", secret)
    nodes = short_jobs(folder, "both")
    nodes.shell = Shell("short", None, ("CELL_TOKEN",))
    job = begun(nodes, 'echo "$CELL_TOKEN" | wc -c; echo "token: $CELL_TOKEN"')
    await_states(nodes, (job, "ended"))
    assert nodes.logs(job) == f"{len(secret) + 1}\ntoken: $CELL_TOKEN\n"
    assert secret not in cluster.run("scontrol", "show", "job")


def test_states_outlive_the_controller(folder: Path, cluster: SlurmCluster) -> None:
    """A controller that is away is asked again; jobs that it forgets have their exit codes."""
    nodes = short_jobs(folder, "both")
    failed, done = begun(nodes, "false"), begun(nodes, "true")
    await_states(nodes, (failed, "failed"), (done, "ended"))
    cluster.stop_daemon("slurmctld")
    with pytest.raises(EngineError, match="Slurm does not answer") as away:
        nodes.poll(failed)
    assert away.value.passing
    cluster.start_controller()
    await_states(nodes, (done, "ended"), (failed, "failed"))
