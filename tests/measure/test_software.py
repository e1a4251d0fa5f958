"""The revision of code is that of the checkout that tracks it, and of no other."""

from __future__ import annotations

import subprocess
from pathlib import Path

from epochcost.measure.environment import code_revision


def git(folder: Path, *arguments: str) -> str:
    """Run git without the user's settings."""
    identity = ("-c", "user.name=Test", "-c", "user.email=test@example.org")
    command = ("git", *identity, "-C", str(folder), *arguments)
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def checkout(folder: Path) -> Path:
    """A repository whose one package is committed; returns the package."""
    package = folder / "package"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "First")
    return package


def test_a_clean_checkout_is_its_commit(tmp_path: Path) -> None:
    """What changes beside the package is no change of the code."""
    package = checkout(tmp_path)
    (tmp_path / "notes.txt").write_text("beside the package")
    found = code_revision(package)
    assert found is not None
    assert (found.commit, found.modified) == (git(tmp_path, "rev-parse", "HEAD"), False)


def test_an_edited_or_added_file_is_a_modification(tmp_path: Path) -> None:
    """A commit alone would name code that did not run."""
    package = checkout(tmp_path)
    (package / "added.py").write_text("")
    found = code_revision(package)
    assert found is not None
    assert found.modified


def test_an_installed_package_is_not_of_the_checkout_around_it(tmp_path: Path) -> None:
    """A virtual environment within a repository holds code of somebody else."""
    checkout(tmp_path)
    installed = tmp_path / "venv/package"
    installed.mkdir(parents=True)
    (installed / "__init__.py").write_text("")
    assert code_revision(installed) is None


def test_no_checkout_is_none(tmp_path: Path) -> None:
    """A wheel's code has a version and no commit."""
    assert code_revision(tmp_path) is None
