"""The folder for temporary files is fresh, private, and removed after a run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from epochcost.errors import CapabilityError
from epochcost.execute.assignment import Assignment
from epochcost.execute.folders import scratch_folder
from epochcost.execute.run import run_trials
from epochcost.plan.make import Plan
from epochcost.results.store import ResultStore
from epochcost.specs.loader import load_catalogue
from tiny_project import write_tiny_project


@pytest.fixture(autouse=True)
def temporary_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Temporary files of these tests stay in the test's own folder."""
    root = tmp_path / "tmp"
    root.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(root))
    return root


def test_the_folder_is_private_and_gone_afterwards(tmp_path: Path) -> None:
    """Only the owner can read the folder, and no file remains after the run."""
    with scratch_folder(tmp_path) as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "graph.onnx").write_bytes(b"x")
    assert not folder.exists()


def test_what_a_killed_run_left_is_removed(tmp_path: Path, temporary_root: Path) -> None:
    """The next run on the same results finds the old folder by name and empties it."""
    with scratch_folder(tmp_path) as folder:
        name = folder.name
    (temporary_root / name).mkdir()
    (temporary_root / name / "left.npz").write_bytes(b"x")
    with scratch_folder(tmp_path) as again:
        assert again.name == name
        assert list(again.iterdir()) == []


def test_other_results_have_another_folder(tmp_path: Path) -> None:
    """Runs with different results folders use different temporary folders."""
    with scratch_folder(tmp_path / "a") as one, scratch_folder(tmp_path / "b") as two:
        assert one != two


def test_letters_that_the_locale_lacks_are_no_obstacle(tmp_path: Path) -> None:
    """A results folder may have a name that is not valid text in the locale."""
    with scratch_folder(tmp_path / os.fsdecode(b"caf\xe9")) as folder:
        assert folder.is_dir()


def test_a_link_in_its_place_is_refused(tmp_path: Path, temporary_root: Path) -> None:
    """No file is written through a symbolic link at the folder's path."""
    with scratch_folder(tmp_path) as folder:
        name = folder.name
    (tmp_path / "elsewhere").mkdir()
    (temporary_root / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CapabilityError, match="expected a fresh folder"), scratch_folder(tmp_path):
        pass


def test_a_run_with_nothing_left_to_do_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    """A run without trials also removes the temporary files of a killed run."""
    catalogue = load_catalogue(write_tiny_project(tmp_path / "project"))
    assignment = Assignment(catalogue, Plan(()), "local", ResultStore(tmp_path))
    with scratch_folder(tmp_path / "local") as folder:
        pass
    folder.mkdir()
    (folder / "left.npz").write_bytes(b"x")
    assert run_trials(assignment, lambda _: None) == ()
    assert not folder.exists()
