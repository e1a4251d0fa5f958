"""A measurement from a machine to the published page, by the workflows of `init`."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from epochcost.cli.app import app
from fake_github import GitHub, write_program
from revisions import commit, git
from shown_comment import shown
from tiny_project import write_tiny_project


class Project:
    """A new project of one tiny model and one machine, `box`, pushed to a remote."""

    def __init__(self, folder: Path, github: GitHub) -> None:
        self.folder, self._github = folder / "costs", github
        assert CliRunner().invoke(app, ["init", str(self.folder)]).exit_code == 0
        shutil.rmtree(self.folder / "specs")
        shutil.rmtree(self.folder / "models")
        write_tiny_project(self.folder)
        specs = self.folder / "specs"
        machine = (specs / "hardware/local.toml").read_text("utf-8")
        (specs / "hardware/box.toml").write_text(machine.replace("local", "box"), "utf-8")
        study = (specs / "studies/brief.toml").read_text("utf-8")
        brief = 'hardware = ["box"]\nmodes = ["training"]\ntraining_batch_sizes = "auto"\n'
        study = study.replace('["tiny"]\n', f'["tiny"]\n{brief}')
        # Samples of two seconds: beside other tests a phase may be half a second longer than its
        # samples, and the check of results requires most of it filled.
        study = study.replace("relative_half_width = 0.5", "relative_half_width = 0.0001")
        study = study.replace("budget_seconds = 0.5", "budget_seconds = 2")
        (specs / "studies/brief.toml").write_text(study, "utf-8")
        self.git("init", "--quiet", "--bare", "--initial-branch=main", str(folder / "remote.git"))
        self.git("init", "--quiet", "--initial-branch=main")
        commit(self.folder)
        self.git("remote", "add", "origin", str(folder / "remote.git"))
        self.git("push", "--quiet", "--set-upstream", "origin", "main")

    def git(self, *arguments: str) -> str:
        """Output of git in the project."""
        return git(self.folder, *arguments)

    def script(self, name: str, *arguments: str) -> str:
        """Output of a workflow's script, which must succeed."""
        program = write_program(self.folder.parent / "epochcost")
        chosen = {"EPOCHCOST": program, "PROVIDER": "cpu", "NO_MKDOCS_2_WARNING": "1"}
        process = subprocess.run(
            [self.folder / ".github/scripts" / name, *arguments],
            cwd=self.folder,
            env=self._github.environment | chosen,
            capture_output=True,
            text=True,
            check=False,
        )
        assert process.returncode == 0, process.stdout + process.stderr
        return process.stdout


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_measurement_goes_from_a_machine_to_the_published_site(tmp_path: Path) -> None:
    """Measured, proposed with its ceilings and limits, compared, commented on and published."""
    github = GitHub(tmp_path)
    project = Project(tmp_path, github)
    project.script("measure.sh", "results")
    files = {
        path.relative_to(project.folder) for path in project.folder.glob("results/box/**/*.json")
    }
    assert {path.parent.name for path in files} == {"box", "ceilings", "limits"}
    shutil.move(project.folder / "results", github.state / "results")
    project.script("propose.sh")
    brought = project.git("diff", "--name-only", "main").split()
    assert {Path(name) for name in brought} == {Path("docs/data") / path for path in files}
    project.script("compare.py", "origin/main", "comment")
    process = github.renew(project.folder / "comment/comment.json")
    assert "commented on pull request 7" in process.stdout
    comment = shown(github.comments[1])
    assert "Results added" in comment.text
    assert comment.live == []
    project.git("switch", "--quiet", "main")
    project.git("merge", "--quiet", "--no-ff", "--message", "Merge", "results-box-12")
    project.script("publish.sh", "site")
    page = (project.folder / "site/machines/box.html").read_text("utf-8")
    assert "tiny" in page.lower()
