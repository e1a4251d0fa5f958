"""The example at the end of each command's help runs in a project."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest

from built_decoders import built_decoder, save_built
from epochcost.cli.app import COMMANDS, load_command
from real_trainings import place_digits
from revisions import commit, git
from tiny_project import linear_model
from tool_exports import VLLM, write_export


def _examples() -> Iterator[tuple[str, str]]:
    """Each command's name with the example at the end of its help."""
    for name in COMMANDS:
        command = load_command(name)
        members = getattr(command, "commands", None)
        commands = {f"{name} {inner}": entry for inner, entry in members.items()} if members else {}
        for full_name, entry in (commands or {name: command}).items():
            yield full_name, entry.epilog.partition("Example:\n")[2].strip()


EXAMPLES = dict(_examples())
ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
SPECS = ("hardware", "prices", "grids", "datasets", "devices")
MODELS = ("mnist-mlp", "mnist-cnn", "gpt2-xl", "digits-mlp", "smollm2-135m", "llama-3.1-8b")
# Other tests run these: `serve` does not end, two need the network, `launch` needs a target.
ELSEWHERE = {"serve", "data fetch", "engine", "launch"}
# Slow commands; all have quick tests elsewhere.
LONG = {"build", "ceilings", "plan", "run", "trust"}
LISTED = "InstanceType,Region,Price,SpotPrice\ng4dn.xlarge,us-east-1,0.526,0.2104\n"
# Answers for prompts without a default.
ANSWERS = b"\nmade up for a test\n" * 9


@pytest.fixture(scope="module", name="project")
def project_fixture(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A Git repository with this project's machines and prices, a few models and a short study."""
    project = tmp_path_factory.mktemp("examples") / "project"
    for kind in SPECS:
        shutil.copytree(ROOT / "specs" / kind, project / "specs" / kind)
    for name in ("site_templates", "models"):
        shutil.copytree(ROOT / name, project / name)
    shutil.copytree(
        ROOT / "docs", project / "docs", ignore=shutil.ignore_patterns("data", "images")
    )
    _copy(project, "mkdocs.yml")
    for model in MODELS:
        _copy(project, f"specs/models/{model}.toml")
    # Few enough to withhold each in seconds.
    for table in (ROOT / "specs/observations").glob("neusight*"):
        _copy(project, str(table.relative_to(ROOT)))
    for name in ("decoders.csv", "training-llm.csv", "training-llm.toml"):
        _copy(project, f"specs/observations/{name}")
    for result in (ROOT / "docs/data/results/epyc-vm-2").glob("mnist-cnn-*.json"):
        _copy(project, str(result.relative_to(ROOT)))
    for result in (ROOT / "docs/data/results/turin-vm-2").glob("smollm2-135m-*.json"):
        _copy(project, str(result.relative_to(ROOT)))
    study = (ROOT / "specs/studies/starter.toml").read_text("utf-8")
    brief = study.partition("[sampling]")[0].replace("rounds = 3", "rounds = 1")
    path = project / "specs/studies/starter.toml"
    path.parent.mkdir()
    path.write_text(
        brief.replace('"mnist-mlp", "mnist-cnn"', '"mnist-mlp"').replace('"cpu", "cuda"', '"cpu"')
        + "[sampling]\nrelative_half_width = 0.5\nminimum_samples = 10\nbudget_seconds = 0.5\n"
    )
    onnx.save(linear_model(), project / "model.onnx")
    (project / "exported").mkdir()
    save_built(built_decoder(), project / "exported" / "model.onnx")
    (project / "vms.csv").write_text(LISTED)
    write_export(project, VLLM, "serve.json")
    _copy(project, "specs/api-tables/models-dev.toml")
    # Without the rows of models that this project lacks.
    header, *rows = (ROOT / "specs/api-tables/models-dev.csv").read_text().splitlines(keepends=True)
    kept = [header, *(row for row in rows if row.split(",")[2] in MODELS)]
    (project / "specs/api-tables/models-dev.csv").write_text("".join(kept))
    (project / "models.dev/providers").mkdir(parents=True)
    shutil.copyfile(place_digits(project / "data"), project / "digits.csv.gz")
    shutil.copyfile(ROOT / "specs/replays/made-three-zones.csv", project / "prices.csv")
    git(project, "init", "--quiet", "--initial-branch", "main")
    commit(project)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{BIN}{os.pathsep}{os.environ['PATH']}")
        yield project


def _copy(project: Path, name: str) -> None:
    (project / name).parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(ROOT / name, project / name)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name in LONG else [])
        for name in sorted(set(EXAMPLES) - ELSEWHERE)
    ],
)
def test_example_runs(project: Path, name: str) -> None:
    """The example succeeds at a terminal, with answers to its prompts."""
    ours, terminal = os.openpty()
    os.write(ours, ANSWERS)
    try:
        process = subprocess.run(
            shlex.split(EXAMPLES[name]),
            cwd=project,
            stdin=terminal,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        os.close(ours)
        os.close(terminal)
    assert process.returncode == 0, process.stdout + process.stderr
