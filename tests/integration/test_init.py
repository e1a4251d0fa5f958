"""`epochcost init`: a new project checks, plans, builds and measures at once."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from epochcost.analysis.inputs import read_inputs
from epochcost.analysis.predicted import predict_times
from epochcost.cli.app import app
from epochcost.cli.project import requirement_origin
from epochcost.errors import InputError
from epochcost.specs.loader import load_catalogue

ROOT = Path(__file__).parents[2]
PROGRAM = Path(sys.executable).with_name("epochcost")


def _files(folder: Path) -> set[Path]:
    return {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project created in an empty folder."""
    folder = tmp_path_factory.mktemp("team") / "costs"
    result = CliRunner().invoke(app, ["init", str(folder)])
    assert result.exit_code == 0, result.exception
    assert f"cd {folder} && make report" in result.output
    return folder


def _in(project: Path, *command: str | Path) -> str:
    """Output of a command in the project, with this environment's programs."""
    path = os.pathsep.join((str(PROGRAM.parent), os.environ["PATH"]))
    environment = {**os.environ, "PATH": path, "PIP_NO_INDEX": "1"}
    process = subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


def test_specs_are_valid(project: Path) -> None:
    """The new specs have no fault and name existing schemas."""
    _in(project, PROGRAM, "check")
    for spec in (project / "specs").rglob("*.toml"):
        schema = spec.read_text("utf-8").partition("\n")[0].removeprefix("#:schema ")
        assert (spec.parent / schema).is_file(), spec


def test_it_plans_its_example(project: Path) -> None:
    """The plan trains and serves the example model on this machine."""
    planned = _in(project, PROGRAM, "plan", "--provider", "cpu")
    assert "mnist-mlp training cpu batch 128" in planned


def test_its_models_get_predicted_times(project: Path) -> None:
    """The tables of predictions are included: one of our models has a time on its GPU machine."""
    shutil.copyfile(ROOT / "models/resnet50.onnx", project / "models/resnet50.onnx")
    text = (ROOT / "specs/models/resnet50.toml").read_text().replace("\ndataset = ", "\n# ")
    (project / "specs/models/resnet50.toml").write_text(text)
    inputs = read_inputs(load_catalogue(project), [], project / "docs")
    rows = predict_times(inputs, [inputs.catalogue.models["resnet50"]]).observations
    (project / "specs/models/resnet50.toml").unlink()
    (project / "models/resnet50.onnx").unlink()
    assert {row.machine.hardware for row in rows} == {"p3.2xlarge"}


@pytest.mark.slow
def test_its_site_builds_without_a_warning(project: Path) -> None:
    """`make check` builds strictly, with the package's templates and no result."""
    _in(project, "make", "check")
    home = (project / ".cache/check-site/index.html").read_text("utf-8")
    assert "What our models cost" in home
    assert "assets/before-theme.js" in home
    assert not (project / "site_templates").exists()


def test_it_has_the_workflows_of_this_repository(project: Path) -> None:
    """The same workflows and scripts, and everything they call."""
    ours = ROOT / ".github"
    workflows = {
        path.relative_to(ours)
        for name in ("scripts", "workflows")
        for path in (ours / name).iterdir()
        if path.is_file() and path.stem not in {"wheel", "weekly"}
    }
    assert _files(project / ".github") == workflows
    for name in workflows:
        assert (project / ".github" / name).read_bytes() == (ROOT / ".github" / name).read_bytes()
    for lock in ("report", "run", "gpu"):
        assert (project / f"requirements/{lock}.txt").is_file()
    assert os.access(project / "requirements/bootstrap.sh", os.X_OK)
    assert "\ntest:" in (project / "Makefile").read_text("utf-8")


def test_it_installs_no_name_that_others_may_register(project: Path) -> None:
    """Every requirement on epochcost has a source, here the path of this checkout."""
    files = list((project / "requirements").glob("*.txt"))
    assert len(files) == len(list((ROOT / "runner/epochcost/template/requirements").glob("*.txt")))
    for file in files:
        lines = [line for line in file.read_text("utf-8").splitlines() if line[:1] != "#"]
        assert [line.partition(" @ ")[2] for line in lines] == [ROOT.as_uri()]


@pytest.mark.parametrize(
    ("origin", "requirement"),
    [
        (None, "==1.2"),
        ({"url": "file:///a%20b", "dir_info": {"editable": True}}, " @ file:///a%20b"),
        (
            {"url": "https://example.org/r", "vcs_info": {"vcs": "git", "commit_id": "c0ffee"}},
            " @ git+https://example.org/r@c0ffee",
        ),
        (
            {"url": "file:///e.whl", "archive_info": {"hashes": {"sha256": "ab"}}},
            " @ file:///e.whl#sha256=ab",
        ),
    ],
)
def test_what_is_pinned_is_what_pip_noted(origin: object, requirement: str) -> None:
    """A version of an index, a path, a commit or an archive's hash."""
    assert requirement_origin(None if origin is None else json.dumps(origin), "1.2") == requirement


def test_a_folder_in_use_is_refused(project: Path) -> None:
    """Files are never overwritten; a fresh clone counts as empty."""
    before = _files(project)
    error = CliRunner().invoke(app, ["init", str(project)]).exception
    assert isinstance(error, InputError)
    assert "expected a new or empty folder" in str(error)
    assert _files(project) == before


def test_a_killed_one_is_repeated(tmp_path: Path) -> None:
    """The same command succeeds and removes the remains."""
    (tmp_path / ".mine.making-dead/project").mkdir(parents=True)
    code = """
import os
from epochcost.cli import app, project
project.schema_files = lambda: os.kill(os.getpid(), 9)
app.main()
"""
    command = [sys.executable, "-c", code, "init", "mine"]
    killed = subprocess.run(command, cwd=tmp_path, check=False)
    assert killed.returncode == -9
    assert CliRunner().invoke(app, ["init", str(tmp_path / "mine")]).exit_code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.slow
def test_make_report_measures_and_publishes(project: Path) -> None:
    """One command in the new folder measures this machine and shows what its steps cost."""
    output = _in(project, "make", "report")
    assert "The report: file://" in output
    page = (project / "site/models/mnist-mlp.html").read_text("utf-8")
    assert "local" in page
    assert list((project / "docs/data/results").rglob("*.json"))


def test_the_printed_command_starts_this_program(tmp_path: Path) -> None:
    """If `python -m epochcost` made the project, `make` gets a command that can be executed."""
    environment = {**os.environ, "PATH": "/usr/bin:/bin"}
    made = subprocess.run(
        [sys.executable, "-m", "epochcost", "init", str(tmp_path / "costs")],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    *_, variable = shlex.split(made.stdout.splitlines()[-1])
    name, _, command = variable.partition("=")
    assert name == "EPOCHCOST"
    subprocess.run(f"{command} --version", shell=True, check=True)  # noqa: S602  our own command
