"""`epochcost fmt`: what it writes, what it leaves alone, and its exit codes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from epochcost.cli.app import app

ROOT = Path(__file__).parents[2]
PRICE = "specs/prices/p4d.24xlarge-on-demand-2026-07.toml"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the specs, as the current folder."""
    shutil.copytree(ROOT / "specs", tmp_path / "specs")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _untidy(path: Path) -> str:
    """The file with its id at the end of its first table, and what it was before."""
    text = path.read_text("utf-8")
    schema, name, *rest = text.splitlines(keepends=True)
    path.write_text("".join((schema, *rest, name)), "utf-8")
    return text


def test_check_lists_and_writes_nothing(project: Path) -> None:
    """With --check an untidy file is named, exit code 1, and stays as it is."""
    _untidy(project / PRICE)
    before = (project / PRICE).read_bytes()
    done = CliRunner().invoke(app, ["fmt", "--check"])
    assert done.exit_code == 1
    assert done.stdout == f"{PRICE}: not in the layout\n"
    assert (project / PRICE).read_bytes() == before


def test_writes_only_what_changes(project: Path) -> None:
    """The untidy file becomes what it was; nothing else is touched; then nothing is left."""
    text = _untidy(project / PRICE)
    others = {p: p.stat().st_mtime_ns for p in (project / "specs").rglob("*.toml")}
    done = CliRunner().invoke(app, ["fmt"])
    assert done.exit_code == 0
    assert done.stdout == f"{PRICE}: laid out\n"
    assert (project / PRICE).read_text("utf-8") == text
    changed = [path for path, time in others.items() if path.stat().st_mtime_ns != time]
    assert changed == [project / PRICE]
    assert CliRunner().invoke(app, ["fmt", "--check"]).exit_code == 0


def test_paths_limit_what_is_laid_out(project: Path) -> None:
    """Only the files that are asked for are looked at."""
    _untidy(project / PRICE)
    assert CliRunner().invoke(app, ["fmt", "specs/models", "--check"]).exit_code == 0
    assert CliRunner().invoke(app, ["fmt", PRICE, "--check"]).exit_code == 1


def test_modes_and_links_stay(project: Path) -> None:
    """A file keeps its rights, and a link within the specs leads where it did."""
    own, linked = project / PRICE, project / "specs/prices/inside/linked.toml"
    _untidy(own)
    own.chmod(0o604)
    linked.parent.mkdir()
    other = own.read_text("utf-8").replace(f'id = "{own.stem}"', 'id = "linked"')
    (target := linked.with_name(".target")).write_text(other, "utf-8")
    target.chmod(0o640)
    linked.symlink_to(target.name)
    done = CliRunner().invoke(app, ["fmt"])
    assert done.exit_code == 0, done.output
    assert "2 laid out" in done.stderr
    assert linked.is_symlink()
    assert target.read_text("utf-8") != other
    assert [path.stat().st_mode & 0o777 for path in (own, target)] == [0o604, 0o640]


def test_a_read_only_file_is_left_alone(project: Path) -> None:
    """It is named, and the exit code says that it is not laid out."""
    _untidy(project / PRICE)
    untidy = (project / PRICE).read_bytes()
    (project / PRICE).chmod(0o444)
    done = CliRunner().invoke(app, ["fmt"])
    assert done.exit_code == 1
    assert f"{PRICE}: left as it is, for it is read-only" in done.stderr
    assert (project / PRICE).read_bytes() == untidy
    assert (project / PRICE).stat().st_mode & 0o777 == 0o444


def test_a_file_with_faults_is_left_alone(project: Path) -> None:
    """A file that `epochcost check` refuses is named and not written, even where it is untidy."""
    _untidy(project / PRICE)
    wrong = (project / PRICE).read_text("utf-8").replace("amount = ", "amuont = ")
    (project / PRICE).write_text(wrong, "utf-8")
    done = CliRunner().invoke(app, ["fmt", PRICE])
    assert done.exit_code == 1
    assert f"{PRICE}: left as it is, for it has faults" in done.stderr
    assert (project / PRICE).read_text("utf-8") == wrong
