"""Environments of engines are complete or absent, proved before use, and reused.

pip is real and its index is a folder; later environments are copies of the first one.
"""

from __future__ import annotations

import fcntl
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from epochcost.errors import CapabilityError
from epochcost.execute import engines
from epochcost.execute.engines import (
    WORKER_PACKAGES,
    environment_folder,
    environments_folder,
    find_environment,
    install_engine,
    interpreter,
    missing_engines,
    python_of,
)
from epochcost.measure.job import Job, TrialFailed
from epochcost.measure.runtime import runtime_name
from epochcost.measure.trial import run_trial
from epochcost.plan.trial import Trial
from epochcost.plan.work import Requests
from epochcost.specs.requests import Lengths
from epochcost.specs.study import Study
from fake_engines import FAKE, use_index, write_index
from report_project import make_result

OLDER = "onnxruntime-genai==0.0.1"
# Prints the distributions of everything that a worker has imported.
_LIST_IMPORTS = """
import importlib.metadata, json, sys
import epochcost.measure.worker
owners = importlib.metadata.packages_distributions()
tops = {name.split(".")[0] for name, module in sys.modules.items()
        if "site-packages" in (getattr(module, "__file__", None) or "")}
print(json.dumps(sorted({owner for top in tops for owner in owners.get(top, ())})))
"""
REQUESTS = {
    "prompt": {"tokens": [8]},
    "answer": {"tokens": [4]},
    "first_token_ms": 9,
    "token_ms": 3,
}
_install = engines._install


def ignore(_: object) -> None:
    """Ignore a line of progress."""


@pytest.fixture(name="index", scope="module")
def index_fixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of wheels that serves as pip's index."""
    return write_index(tmp_path_factory.mktemp("index") / "wheels")


@pytest.fixture(name="made", scope="module")
def made_fixture(index: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A real environment in a cache for the whole module."""
    with pytest.MonkeyPatch.context() as patch:
        use_index(patch, index, tmp_path_factory.mktemp("cache"))
        yield install_engine(FAKE, ignore)


@pytest.fixture(name="copying")
def copying_fixture(
    made: Path, index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """An empty cache in which each new environment is a copy of ``made``."""

    def copy(environment: Path, _: str) -> None:
        shutil.copytree(made, environment, symlinks=True, copy_function=os.link)

    use_index(monkeypatch, index, tmp_path)
    monkeypatch.setattr(engines, "_create", copy)
    monkeypatch.setattr(engines, "_install", lambda *_: None)
    return environments_folder()


def test_an_environment_is_proved_and_kept(made: Path) -> None:
    """The environment is in the cache, and a second installation finds it there."""
    assert python_of(made).is_relative_to(made)
    assert [path.name for path in environments_folder().iterdir()] == [made.name]
    heard: list[str] = []
    assert install_engine(FAKE, heard.append) == made
    assert heard == [f"{FAKE}: already installed"]


def test_no_runtime_measures_under_the_name_of_another(made: Path, tmp_path: Path) -> None:
    """A worker whose runtime is not the one of its job refuses before it reads any file."""
    nowhere = tmp_path / "not there"
    job = Job(
        mode="inference",
        provider="cpu",
        runtime="onnxruntime==1.20.0",
        python=python_of(made),
        graph=nowhere,
        batches=nowhere,
    )
    with pytest.raises(TrialFailed, match=r"expected .*==1\.20\.0, got .*: a result"):
        run_trial(job, tmp_path, ignore)


def test_what_pip_cannot_find_leaves_nothing(
    copying: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error has exit code 3, pip's message and a remedy; no folder remains."""
    monkeypatch.setattr(engines, "_install", _install)
    with pytest.raises(CapabilityError, match="No matching distribution") as caught:
        install_engine(OLDER, ignore)
    assert caught.value.exit_code == 3
    assert "Check the network" in str(caught.value)
    assert list(copying.iterdir()) == []


def test_an_environment_of_another_engine_is_not_kept(copying: Path) -> None:
    """A new environment that runs another engine is removed."""
    with pytest.raises(CapabilityError, match=r"expected .*0\.0\.1, got .*0\.0\.2"):
        install_engine(OLDER, ignore)
    assert list(copying.iterdir()) == []


def test_an_incomplete_environment_is_never_used_and_is_replaced(copying: Path) -> None:
    """A folder without an interpreter is not an environment; a new one replaces it."""
    target = environment_folder(FAKE)
    remains = target / "lib/half a package"
    remains.mkdir(parents=True)
    assert find_environment(FAKE) is None
    assert install_engine(FAKE, ignore) == target == find_environment(FAKE)
    assert not remains.exists()
    assert [path.name for path in copying.iterdir()] == [target.name]


def test_two_that_make_the_same_end_with_one(copying: Path) -> None:
    """Of two concurrent installations the first one's folder is kept, and both return it."""
    found: list[Path] = []
    makers = [
        threading.Thread(target=lambda: found.append(install_engine(FAKE, ignore))) for _ in "ab"
    ]
    for maker in makers:
        maker.start()
    for maker in makers:
        maker.join()
    assert found == [find_environment(FAKE)] * 2
    assert [path.name for path in copying.iterdir()] == [environment_folder(FAKE).name]


def test_the_remains_of_a_killed_maker_are_removed(copying: Path) -> None:
    """Folders of dead installations are removed; those of running installations stay."""
    dead, alive = copying / ".making-dead", copying / ".making-alive"
    dead.mkdir(parents=True)
    (dead / "some").write_text("bytes")
    alive.mkdir()
    held = os.open(alive, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    try:
        install_engine(FAKE, ignore)
    finally:
        os.close(held)
    assert {path.name for path in copying.iterdir()} == {alive.name, environment_folder(FAKE).name}


def canonical(name: str) -> str:
    """A package's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def needed(names: set[str]) -> set[str]:
    """``names`` and all packages that they require, without extras."""
    every: set[str] = set()
    waiting = set(names)
    while waiting:
        name = canonical(waiting.pop())
        try:
            lines = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        every.add(name)
        plain = (line for line in lines if "extra ==" not in line)
        found = {canonical(re.split(r"[^\w.-]", line, maxsplit=1)[0]) for line in plain}
        waiting |= found - every
    return every


def test_an_environment_has_all_that_a_worker_imports() -> None:
    """Each package that a worker imports is in ``WORKER_PACKAGES`` or required by one of them."""
    done = subprocess.run(
        [sys.executable, "-c", _LIST_IMPORTS], capture_output=True, text=True, check=True
    )
    imported = {canonical(name) for name in json.loads(done.stdout)}
    runtime = runtime_name().split("==")[0]
    # setuptools' own .pth file imports it in every interpreter that has it.
    own = {"setuptools", "epochcost", "onnxstep"}
    assert imported - needed({*WORKER_PACKAGES, runtime}) <= own


def place(engine: str) -> Path:
    """Create the folder of an engine's environment, with this interpreter."""
    folder = environment_folder(engine)
    python_of(folder).parent.mkdir(parents=True)
    python_of(folder).symlink_to(sys.executable)
    return folder


def study(engine: str | None = None) -> Study:
    """A study with requests to an engine, or with none."""
    requests = {} if engine is None else {"requests": REQUESTS | {"engine": engine}}
    return Study.model_validate({"id": "s", "name": "S", "models": ["m"], **requests})


def test_an_engine_is_missing_until_it_is_prepared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason names the install command; a study without requests needs no engine."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    asked = [study(), study(FAKE), study(FAKE)]
    ((engine, message),) = missing_engines(asked).items()
    assert (engine, f"`epochcost engine {FAKE}`" in message) == (FAKE, True)
    place(FAKE)
    assert missing_engines(asked) == {}


def test_without_a_home_folder_an_engine_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user of a container may have no home: trials without engines are planned."""

    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert [*missing_engines([study(FAKE)])] == [FAKE]
    with pytest.raises(CapabilityError, match="the environment variable XDG_CACHE_HOME"):
        install_engine(FAKE, ignore)


def test_requests_alone_have_an_interpreter_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps run in this interpreter; requests need the environment of their engine."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    plain: Trial = make_result().trial
    assert interpreter(plain) is None
    requests = Requests(
        prompt=Lengths(tokens=(8,)), answer=Lengths(tokens=(4,)), first_token_ms=9, token_ms=3
    )
    asked = plain.model_copy(update={"work": requests, "runtime": FAKE})
    with pytest.raises(CapabilityError, match=f"epochcost engine {FAKE}"):
        interpreter(asked)
    assert interpreter(asked.model_copy(update={"runtime": FAKE})) if place(FAKE) else None
