"""Environments of runtimes: made whole or not at all, proved, and measured under their own name.

pip is real and its index a folder; after the first environment the others are copies of it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from epochcost.errors import CapabilityError
from epochcost.execute import runtime_install
from epochcost.execute.assignment import Assignment, Event, Finished, Skipped
from epochcost.execute.planning import RunRequest, plan_run
from epochcost.execute.run import run_trials
from epochcost.execute.runtime_install import install_runtime
from epochcost.execute.runtimes import (
    RuntimeEnvironment,
    environment_folder,
    environments_folder,
    find_environment,
)
from epochcost.measure.job import Job, TrialFailed
from epochcost.measure.runtime import runtime_name
from epochcost.measure.trial import run_trial
from epochcost.results.store import ResultStore, load_all
from epochcost.specs.loader import load_catalogue
from fake_runtimes import FAKE, use_index, write_index, write_wheel
from tiny_project import write_tiny_project

_install = runtime_install._install


def ignore(_: object) -> None:
    """Hear nothing."""


@pytest.fixture(name="index", scope="module")
def index_fixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of wheels."""
    return write_index(tmp_path_factory.mktemp("index") / "wheels")


@pytest.fixture(name="made", scope="module")
def made_fixture(
    index: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RuntimeEnvironment]:
    """One environment, really made, in a cache that the whole module uses."""
    with pytest.MonkeyPatch.context() as patch:
        use_index(patch, index, tmp_path_factory.mktemp("cache"))
        yield install_runtime(FAKE, ignore)


@pytest.fixture(name="copying")
def copying_fixture(
    made: RuntimeEnvironment, index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """An empty cache, which is returned, where an environment is made by copying the made one."""

    def copy(environment: Path, _: str) -> None:
        shutil.copytree(made.folder, environment, symlinks=True, copy_function=os.link)
        (environment / "runtime.json").unlink()

    use_index(monkeypatch, index, tmp_path)
    monkeypatch.setattr(runtime_install, "_create", copy)
    monkeypatch.setattr(runtime_install, "_install", lambda *_: None)
    return environments_folder()


def test_an_environment_is_proved_and_kept(made: RuntimeEnvironment) -> None:
    """It runs what it is called, knows what it reads, and the second time it is there at once."""
    assert made.runtime == FAKE
    assert made.support.opset >= 18
    assert made.python.is_relative_to(made.folder)
    assert [path.name for path in environments_folder().iterdir()] == [made.folder.name]
    heard: list[str] = []
    assert install_runtime(FAKE, heard.append) == made
    assert heard == [f"{FAKE}: is there"]


def test_a_study_compares_runtimes(made: RuntimeEnvironment, tmp_path: Path) -> None:
    """The same work under two runtimes is two results, each under the name that its worker told."""
    assert made.runtime == FAKE
    project = write_tiny_project(tmp_path / "project")
    study = project / "specs/studies/brief.toml"
    asked = f'modes = ["inference"]\nruntimes = ["{runtime_name()}", "{FAKE}"]\n\n[sampling]'
    study.write_text(study.read_text().replace("[sampling]", asked))
    catalogue = load_catalogue(project)
    planned = plan_run(catalogue, RunRequest(providers=("cpu",)))
    store = ResultStore(tmp_path / "results")
    events: list[Event] = []
    outcomes = run_trials(Assignment(catalogue, planned.trials, "local", store), events.append)
    assert all(isinstance(outcome, Finished) for outcome in outcomes), outcomes
    stored = {result.trial.variant: result for result in load_all(store.folder).results}
    assert stored.keys() == {"", "onnxruntime 1.20.1"}
    assert stored[""].environment.runtime == runtime_name()
    other = stored["onnxruntime 1.20.1"].environment
    assert (other.runtime, other.fingerprint) == (FAKE, stored[""].environment.fingerprint)
    again = Assignment(catalogue, planned.trials, "local", store, resume=True)
    assert all(isinstance(outcome, Skipped) for outcome in run_trials(again, ignore))


def test_no_runtime_measures_under_the_name_of_another(
    made: RuntimeEnvironment, tmp_path: Path
) -> None:
    """A worker that finds another runtime than its job demands refuses before it does anything."""
    nowhere = tmp_path / "not there"
    job = Job(
        mode="inference",
        provider="cpu",
        runtime="onnxruntime==1.20.0",
        python=made.python,
        graph=nowhere,
        batches=nowhere,
    )
    with pytest.raises(TrialFailed, match=r"expected .*==1\.20\.0, got .*==1\.20\.1: no figure"):
        run_trial(job, tmp_path, ignore)


def test_a_lock_is_held_to_its_hashes(
    made: RuntimeEnvironment, index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a lock pins comes from it alone, and a package with another content is refused."""
    write_wheel(tmp_path, "locked", "1.0", {"locked.py": ""})
    (wheel,) = tmp_path.glob("locked*.whl")
    lock, constraints = tmp_path / "lock.txt", tmp_path / "constraints.txt"
    monkeypatch.setattr(runtime_install, "lock_file", lambda _: lock)
    use_index(monkeypatch, tmp_path, index)
    right = hashlib.sha256(wheel.read_bytes()).hexdigest()
    lock.write_text(f"locked==1.0 --hash=sha256:{'0' * 64}\n")
    with pytest.raises(CapabilityError, match="THESE PACKAGES DO NOT MATCH THE HASHES"):
        _install(made.folder, constraints, FAKE)
    lock.write_text(f"locked==1.0 --hash=sha256:{right}\n")
    _install(made.folder, constraints, FAKE)
    assert list(made.folder.glob("lib/*/site-packages/locked.py"))


def test_what_pip_cannot_find_leaves_nothing(
    copying: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a wheel or a network: exit code 3, pip's own words, what to do, and no trace."""
    monkeypatch.setattr(runtime_install, "_install", _install)
    with pytest.raises(CapabilityError, match="No matching distribution") as caught:
        install_runtime("onnxruntime==1.19.9", ignore)
    assert caught.value.exit_code == 3
    assert "Is the network there" in str(caught.value)
    assert list(copying.iterdir()) == []


def test_an_environment_of_another_runtime_is_not_kept(copying: Path) -> None:
    """What was made is asked what it is; one that is not the runtime is thrown away."""
    with pytest.raises(CapabilityError, match=r"expected .*1\.19\.9, got .*1\.20\.1"):
        install_runtime("onnxruntime==1.19.9", ignore)
    assert list(copying.iterdir()) == []


def test_a_half_made_environment_is_never_used_and_is_made_anew(copying: Path) -> None:
    """Without its description, written last, an environment is none; what is there is replaced."""
    target = environment_folder(FAKE)
    (target / "bin").mkdir(parents=True)
    (target / "bin/python").write_text("half an interpreter")
    assert find_environment(FAKE) is None
    assert install_runtime(FAKE, ignore).folder == target
    assert [path.name for path in copying.iterdir()] == [target.name]


def test_two_that_make_the_same_end_with_one(copying: Path) -> None:
    """The faster one's is kept, the other finds it; neither fails."""
    found: list[RuntimeEnvironment] = []
    makers = [
        threading.Thread(target=lambda: found.append(install_runtime(FAKE, ignore))) for _ in "ab"
    ]
    for maker in makers:
        maker.start()
    for maker in makers:
        maker.join()
    assert found == [find_environment(FAKE)] * 2
    assert [path.name for path in copying.iterdir()] == [environment_folder(FAKE).name]


def test_the_remains_of_a_killed_maker_are_removed(copying: Path) -> None:
    """What no process holds goes; what another one is making stays."""
    dead, alive = copying / ".making-dead", copying / ".making-alive"
    dead.mkdir(parents=True)
    (dead / "some").write_text("bytes")
    alive.mkdir()
    held = os.open(alive, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    try:
        install_runtime(FAKE, ignore)
    finally:
        os.close(held)
    assert {path.name for path in copying.iterdir()} == {alive.name, environment_folder(FAKE).name}
