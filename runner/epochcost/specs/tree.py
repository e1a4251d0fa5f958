"""The folder of specs: where it is, which files are specs of which kind, and what does not belong.

    specs/
    ├── hardware/  prices/  models/  studies/  published/     *.toml, in subfolders too
    └── datasets/  targets/  grids/                           reserved

Files beside the specs are welcome where they cannot be mistaken for one: Markdown, hidden files
and editors' backups; and the .csv files of price histories and of observations.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from epochcost.errors import Fault, InputError
from epochcost.specs.kinds import KINDS, RESERVED
from epochcost.specs.wording import nearest, printable, shown

FOLDER = "specs"
_WITH_TABLES = frozenset({"prices", "observations"})


class SpecFile(NamedTuple):
    """A file and the kind that its folder says."""

    kind: str
    path: Path


def located(path: Path) -> Path:
    """The absolute path of something that exists; raises InputError where nothing does.

    Links on the way are followed, but not the last part, so that faults name what was asked for.
    """
    try:
        path.lstat()
        return path.parent.resolve() / path.name if path.name.strip(".") else path.resolve()
    except (OSError, RuntimeError) as error:
        demand = "demanded a file or folder of specs"
        raise InputError(
            f"{printable(str(path))}: {demand}, got nothing that can be read there"
        ) from error


def tree_of(path: Path) -> Path:
    """The folder of specs that a located file or folder belongs to.

    A project has it as ``specs/``; inside, it is found upwards; elsewhere the folder with the
    folders of the kinds is taken, whatever its name.
    """
    if (path / FOLDER).is_dir():
        return path / FOLDER
    for folder in (path, *path.parents):
        if folder.name == FOLDER:
            return folder
    folder = path if path.is_dir() else path.parent
    is_kind = folder.name in KINDS and not (folder.parent / FOLDER).is_dir()
    return folder.parent if is_kind else folder


def walk(tree: Path) -> Iterator[SpecFile | Fault]:
    """The spec files of a tree in the order of their names; a fault for what does not belong."""
    for entry in _entries(tree):
        if isinstance(entry, Fault):
            yield entry
        elif entry.name in KINDS and entry.is_dir(follow_symlinks=False):
            yield from _files(entry.name, Path(entry.path))
        else:
            yield Fault(Path(entry.path), 1, 1, _misplaced(entry))


def _files(kind: str, folder: Path) -> Iterator[SpecFile | Fault]:
    pending = [*_reversed_entries(folder)]
    while pending:
        entry = pending.pop()
        if isinstance(entry, Fault):
            yield entry
        elif (
            kind in _WITH_TABLES
            and entry.name.endswith(".csv")
            and entry.is_file(follow_symlinks=False)
        ):
            continue
        elif (is_folder := entry.is_dir(follow_symlinks=False)) == entry.name.endswith(".toml"):
            sort = "folder" if is_folder else "link" if entry.is_symlink() else "file"
            message = f"should be a .toml file, got the {sort} {shown(entry.name)}"
            yield Fault(Path(entry.path), 1, 1, message)
        elif is_folder:
            pending.extend(_reversed_entries(Path(entry.path)))
        else:
            yield SpecFile(kind, Path(entry.path))


def _reversed_entries(folder: Path) -> Iterator[os.DirEntry[str] | Fault]:
    return reversed(_entries(folder))


def _entries(folder: Path) -> Sequence[os.DirEntry[str] | Fault]:
    try:
        with os.scandir(folder) as entries:
            kept = [entry for entry in entries if not _is_aside(entry.name)]
    except OSError as error:
        return [Fault(folder, 1, 1, f"cannot be read: {error.strerror}")]
    return sorted(kept, key=lambda entry: entry.name)


def _is_aside(name: str) -> bool:
    return name.startswith(".") or name.endswith(("~", ".md"))


def _misplaced(entry: os.DirEntry[str]) -> str:
    if entry.name in RESERVED:
        return f"{entry.name}: not yet supported by this version of epochcost"
    if entry.name in KINDS:
        return f"{entry.name}: should be a folder, got a file or a link"
    if entry.name.endswith(".toml"):
        return "should stand in the folder of its kind: " + ", ".join(KINDS)
    return f"unknown folder or file {shown(entry.name)}{nearest(entry.name, KINDS)}"
