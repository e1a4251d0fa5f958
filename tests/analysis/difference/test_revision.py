"""Reading a project at a commit: files that are read, errors, and an untouched working tree."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from epochcost.analysis.difference.revision import at_commit, in_working_tree, read_revision
from epochcost.errors import InputError
from revisions import commit, edit, git, write_repository, write_spec


def test_a_commit_and_the_same_tree(project: Path) -> None:
    """A clean working tree has the files of its commit."""
    before = at_commit(project, "main")
    after = in_working_tree(project)
    assert before.files == after.files
    assert before.label.startswith("main (")


def test_names_are_bytes_to_git(tmp_path: Path) -> None:
    """Folders and results may have names that are not valid UTF-8."""
    name = os.fsdecode(b"caf\xe9")
    project = write_repository(tmp_path / "project")
    (project / name).mkdir()
    for folder in ("specs", "models", "docs"):
        git(project, "mv", folder, f"{name}/{folder}")
    project /= name
    (result,) = sorted((project / "docs/data/results").glob("*/*.json"))[:1]
    result.rename(result.with_name(f"{name}.json"))
    commit(project)
    before = at_commit(project, "main")
    assert before.files == in_working_tree(project).files
    assert f"docs/data/results/{result.parent.name}/{name}.json" in before.files


def test_an_old_commit_leaves_the_tree_alone(project: Path) -> None:
    """Reading an older revision changes neither files nor index nor HEAD."""
    first = git(project, "rev-parse", "HEAD")
    edit(project, "prices/local-2025", "0.90", "0.45")
    commit(project)
    edit(project, "prices/local-2025", "0.45", "0.30")
    git(project, "add", "--all")
    edit(project, "prices/local-2025", "0.30", "0.20")
    index = (project / ".git/index").read_bytes()
    status = git(project, "--no-optional-locks", "status", "--porcelain")
    old = at_commit(project, first)
    price = "specs/prices/local-2025.toml"
    assert b"amount = 0.90" in old.files[price]
    assert b"amount = 0.20" in in_working_tree(project).files[price]
    assert (project / ".git/index").read_bytes() == index
    assert git(project, "--no-optional-locks", "status", "--porcelain") == status


def test_new_files_count_and_ignored_ones_do_not(project: Path) -> None:
    """The working tree includes new files, except those that git ignores."""
    (project / ".gitignore").write_text("docs/data/results/ignored/\n")
    for name in ("ignored", "new"):
        folder = project / "docs/data/results" / name
        folder.mkdir()
        (folder / "x.json").write_text("{}")
    results = in_working_tree(project).files
    assert "docs/data/results/new/x.json" in results
    assert "docs/data/results/ignored/x.json" not in results


def test_a_project_in_a_subfolder(tmp_path: Path) -> None:
    """A project may be in a subfolder of its repository."""
    outer = tmp_path / "outer"
    outer.mkdir()
    write_repository(outer / "project")
    (outer / "project/.git").rename(outer / ".git")
    git(outer, "read-tree", "--empty")
    commit(outer)
    changes = at_commit(outer / "project", "HEAD")
    assert changes.files == in_working_tree(outer / "project").files


@pytest.mark.parametrize("name", ["nowhere", "--help", "HEAD:specs", ""])
def test_a_revision_that_is_none(project: Path, name: str) -> None:
    """A name that is no commit is an error and is never passed to git as an option."""
    with pytest.raises(InputError, match="expected a commit, branch or tag"):
        at_commit(project, name)


def test_faults_at_a_commit(project: Path, tmp_path: Path) -> None:
    """Errors of specs name the revision and the place in the file."""
    write_spec(project, "prices/bad", "id = 1")
    commit(project)
    with pytest.raises(InputError, match=r"HEAD \(\w+\): specs/prices/bad\.toml:1:1: "):
        read_revision(at_commit(project, "HEAD"), tmp_path / "a")


def test_a_link_in_a_commit_is_not_followed(project: Path) -> None:
    """A symbolic link in a commit is not read."""
    (project / "docs/data/results/local/link.json").symlink_to("/etc/passwd")
    commit(project)
    assert "docs/data/results/local/link.json" not in in_working_tree(project).files
    changes = at_commit(project, "HEAD")
    assert "docs/data/results/local/link.json" not in changes.files
