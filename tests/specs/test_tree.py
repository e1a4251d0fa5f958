"""Which files are specs: what does not belong in the folder is said, and never passed over."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from epochcost.specs.catalogue import KINDS

if TYPE_CHECKING:
    from conftest import Project

MISPLACED = [
    (
        "specs/pricse/x.toml",
        'specs/pricse:1:1: unknown folder or file "pricse"; did you mean "prices"?',
    ),
    (
        "specs/x/x.toml",
        'specs/x:1:1: unknown folder or file "x"; known: '
        + ", ".join(f'"{kind}"' for kind in sorted(KINDS)),
    ),
    (
        "specs/targets/x.toml",
        "specs/targets:1:1: targets: not yet supported by this version of epochcost",
    ),
    (
        "specs/x.toml",
        f"specs/x.toml:1:1: should stand in the folder of its kind: {', '.join(KINDS)}",
    ),
    ("specs/prices/x.tml", 'specs/prices/x.tml:1:1: should be a .toml file, got the file "x.tml"'),
    (
        "specs/prices/x.toml/y.toml",
        'specs/prices/x.toml:1:1: should be a .toml file, got the folder "x.toml"',
    ),
    (
        "specs/prices/a/x.TOML",
        'specs/prices/a/x.TOML:1:1: should be a .toml file, got the file "x.TOML"',
    ),
]


@pytest.mark.parametrize(("name", "line"), MISPLACED, ids=[row[0] for row in MISPLACED])
def test_misplaced(project: Project, name: str, line: str) -> None:
    """A file or folder that is no spec by its place or name is one fault."""
    project.write(name, 'id = "x"')
    assert project.faults() == [line]


def test_kind_that_is_a_file(project: Project) -> None:
    """A file where a kind's folder should be is faulted."""
    (project.root / "specs/studies/first.toml").unlink()
    (project.root / "specs/studies").rmdir()
    project.write("specs/studies", "")
    demand = "studies: should be a folder, got a file or a link"
    assert project.faults() == [f"specs/studies:1:1: {demand}"]


def test_kind_whose_folder_is_a_link(project: Project) -> None:
    """What cannot be seen is one fault, and not a fault of everything that names it."""
    (project.root / "specs/hardware").rename(project.root / "elsewhere")
    (project.root / "specs/hardware").symlink_to("../elsewhere")
    demand = "hardware: should be a folder, got a file or a link"
    assert project.faults() == [f"specs/hardware:1:1: {demand}"]


def test_files_beside_the_specs(project: Project) -> None:
    """Markdown, hidden files and editors' backups are no specs and no faults."""
    for name in ("README.md", ".hidden", ".git/config", "prices/box.toml~", "prices/.box.swp"):
        project.write(f"specs/{name}", "not TOML")
    assert project.faults() == []


def test_subfolders_of_a_kind(project: Project) -> None:
    """Specs of one kind may be sorted into folders; the kind is the first one's."""
    project.write("specs/hardware/cloud/aws/y.toml", 'id = "y"\nname = "Y"\nprovider = "AWS"\n')
    line = "specs/hardware/cloud/aws/y.toml:1:1: source: required key is missing"
    assert project.faults() == [line]
    assert project.faults("specs/hardware/cloud") == [line]


def test_folder_of_another_name(project: Project) -> None:
    """The folders of the kinds may stand in a folder that is not called specs."""
    (project.root / "specs").rename(project.root / "mine")
    project.edit("mine/prices/box.toml", "0.90", "0")
    (line,) = project.faults("mine")
    assert line.startswith("mine/prices/box.toml:5:1: amount")
    assert project.faults("mine/prices") == [line]
    assert project.faults("mine/prices/box.toml") == [line]
    assert project.faults("mine/studies") == []


def test_path_through_dots(project: Project) -> None:
    """A path may go up and down."""
    project.edit("specs/prices/box.toml", "0.90", "0")
    (line,) = project.faults("specs/studies/../prices")
    assert line.startswith("specs/prices/box.toml:5:1: amount")
