"""Runtimes of studies: what their environments hold, which are there, and what they cannot read."""

from __future__ import annotations

import importlib.metadata
import json
import re
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from onnx import helper

from epochcost.errors import CapabilityError, ModelError
from epochcost.execute.planning import RunRequest, plan_run
from epochcost.execute.runtimes import (
    WORKER_PACKAGES,
    RuntimeEnvironment,
    all_environments,
    environment_folder,
    find_environment,
    interpreter,
    lock_file,
    missing_runtimes,
    named_runtimes,
    python_of,
    require_readable,
    requirements,
    write_description,
)
from epochcost.measure.runtime import RuntimeSupport, runtime_name
from epochcost.plan.variant import CUDA_12_RUNTIME
from epochcost.results.environment import Software
from epochcost.specs.loader import load_catalogue
from epochcost.specs.study import Study
from tiny_project import write_tiny_project

OLD = "onnxruntime==1.20.1"
# Prints the distributions of everything that a worker has imported.
_LIST_IMPORTS = """
import importlib.metadata, json, sys
import epochcost.measure.worker
owners = importlib.metadata.packages_distributions()
tops = {name.split(".")[0] for name, module in sys.modules.items()
        if "site-packages" in (getattr(module, "__file__", None) or "")}
print(json.dumps(sorted({owner for top in tops for owner in owners.get(top, ())})))
"""


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No environment but those that a test makes."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def place(runtime: str, opset: int = 21, ir_version: int = 10) -> RuntimeEnvironment:
    """What a made environment shows of itself, around this interpreter."""
    folder = environment_folder(runtime)
    python_of(folder).parent.mkdir(parents=True)
    python_of(folder).symlink_to(sys.executable)
    told = Software(runtime=runtime, python="3.11.0")
    write_description(folder, RuntimeSupport(software=told, opset=opset, ir_version=ir_version))
    found = find_environment(runtime)
    assert found is not None
    return found


def study(*runtimes: str) -> Study:
    """A study of these runtimes."""
    return Study.model_validate({"id": "s", "name": "S", "models": ["m"], "runtimes": runtimes})


def canonical(name: str) -> str:
    """A package's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def needed(names: set[str]) -> set[str]:
    """The packages and all that they need, by name, extras left aside."""
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
    """What a worker comes to import and no list names would fail in every environment."""
    done = subprocess.run(
        [sys.executable, "-c", _LIST_IMPORTS], capture_output=True, text=True, check=True
    )
    imported = {canonical(name) for name in json.loads(done.stdout)}
    runtime = runtime_name().split("==")[0]
    # setuptools' own .pth file imports it in every interpreter that has it.
    assert imported - needed({*WORKER_PACKAGES, runtime}) <= {"setuptools", "epochcost"}


def test_everything_but_the_runtime_is_as_installed_here() -> None:
    """Figures of two runtimes differ by the runtime alone."""
    asked = requirements(OLD)
    assert asked[0] == OLD
    assert f"numpy=={importlib.metadata.version('numpy')}" in asked
    assert asked[1:] == requirements("onnxruntime==1.21.0")[1:]
    assert environment_folder(OLD) != environment_folder("onnxruntime==1.21.0")


def test_cuda_libraries_come_with_the_builds_that_know_cuda(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those that are installed here, and the ones that the runtime's own extras name."""
    versions = {"nvidia-cublas": "13.1.0", "numpy": "2.4.6"}

    def version(name: str) -> str:
        if name not in versions:
            raise importlib.metadata.PackageNotFoundError(name)
        return versions[name]

    monkeypatch.setattr(importlib.metadata, "version", version)
    assert requirements(OLD) == (OLD, "numpy==2.4.6")
    assert requirements("onnxruntime-gpu==1.27.0") == (
        "onnxruntime-gpu[cuda,cudnn]==1.27.0", "numpy==2.4.6", "nvidia-cublas==13.1.0"
    )  # fmt: skip
    versions.pop("nvidia-cublas")
    assert requirements("onnxruntime-gpu==1.27.0")[0] == "onnxruntime-gpu==1.27.0"


def test_the_runtime_for_older_gpus_is_locked_whole() -> None:
    """Every package by hash, all that a worker imports, CUDA 12 alone, and no index by name."""
    lock = lock_file(CUDA_12_RUNTIME)
    assert lock is not None
    pins = [one.split(" ;")[0].split("==") for one in requirements(CUDA_12_RUNTIME)]
    names = {name for name, _ in pins}
    assert {*WORKER_PACKAGES, "nvidia-cublas-cu12", "nvidia-cudnn-cu12"} <= names
    assert not any(name.endswith("cu13") for name in names)
    assert CUDA_12_RUNTIME.split("==") in pins
    text = lock.read_text(encoding="utf-8")
    blocks = re.split(r"\n(?=[a-z])", text)[1:]
    assert len(blocks) == len(pins)
    assert all("--hash=sha256:" in block for block in blocks)
    assert "://" not in text
    assert lock_file("onnxruntime-gpu==1.27.0") is None


def test_a_runtime_is_missing_until_it_is_prepared() -> None:
    """The reason names the command; the installed one is never missing."""
    asked = [study(runtime_name(), OLD), study(OLD)]
    assert named_runtimes(asked) == (OLD,)
    assert f"`epochcost runtimes install {OLD}`" in missing_runtimes(asked)[OLD]
    found = place(OLD)
    assert missing_runtimes(asked) == {}
    assert all_environments() == (found,)


def test_a_damaged_environment_is_none() -> None:
    """Without its interpreter, with another one's description, or with none that can be read."""
    found = place(OLD)
    found.python.unlink()
    assert find_environment(OLD) is None
    found = place("onnxruntime==1.21.0")
    write_description(found.folder, found.support.model_copy(update={"software": Software(
        runtime=OLD, python="3.11.0")}))  # fmt: skip
    assert find_environment("onnxruntime==1.21.0") is None
    (found.folder / "runtime.json").write_text("{")
    assert all_environments() == ()


def test_planning_leaves_out_what_is_not_prepared_and_fetches_nothing(tmp_path: Path) -> None:
    """A run with a missing runtime does the rest, and says how to get it."""
    project = write_tiny_project(tmp_path / "project")
    file = project / "specs/studies/brief.toml"
    asked = f'runtimes = ["{runtime_name()}", "{OLD}"]\n\n[sampling]'
    file.write_text(file.read_text().replace("[sampling]", asked))
    catalogue = load_catalogue(project)
    plan = plan_run(catalogue, RunRequest(providers=("cpu",)))
    assert {trial.runtime for trial in plan.trials} == {runtime_name()}
    assert {left.reason for left in plan.left_out} == set(
        missing_runtimes(catalogue.studies.values()).values()
    )
    found = place(OLD)
    plan = plan_run(catalogue, RunRequest(providers=("cpu",)))
    other = next(trial for trial in plan.trials if trial.variant)
    plain = next(trial for trial in plan.trials if not trial.variant)
    assert interpreter(other) == found.python
    assert interpreter(plain) is None
    with pytest.raises(CapabilityError, match="runtimes install onnxruntime==9"):
        interpreter(other.model_copy(update={"runtime": "onnxruntime==9.0.0"}))


@pytest.mark.parametrize(
    ("opset", "ir_version", "words"),
    [
        (21, 10, None),
        (22, 10, "expected opset 21 .* got 22"),
        (21, 11, "expected IR version 10 .* got 11"),
    ],
)
def test_a_model_too_new_for_a_runtime_is_said_at_once(
    opset: int, ir_version: int, words: str | None
) -> None:
    """Before its training step is made or a worker started; the newest that is read is no error."""
    place(OLD)
    graph = onnx.ModelProto(ir_version=ir_version)
    graph.opset_import.extend(
        [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 99)]
    )
    if words is None:
        require_readable(graph, Path("net.onnx"), OLD)
        return
    with pytest.raises(ModelError, match=f"net.onnx: {words}"):
        require_readable(graph, Path("net.onnx"), OLD)
    require_readable(graph, Path("net.onnx"), runtime_name())
