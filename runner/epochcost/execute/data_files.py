"""A data set's files on this machine: which are there, which may be taken in, and taking them in.

A file takes its final name whole and checked or not at all. Fetching is left to ``fetching``,
reading to ``train``; the network is not touched here.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from epochcost.errors import CapabilityError, InputError
from epochcost.results.files import exclusive_lock, is_full
from epochcost.specs.data import DataFile, DataFormat, Files
from epochcost.specs.reference_data import Dataset
from epochcost.train.datasets import data_path
from epochcost.train.readers import read_file, verify

How = Literal["fetched", "imported", "is there"]


@dataclass(frozen=True)
class Held:
    """A file in its place, whose size, hash or content were found right; ``sha256`` is its own."""

    declared: DataFile
    path: Path
    sha256: str
    how: How


def declared_files(dataset: Dataset) -> Files:
    """What the spec says of the files; raises InputError where it says nothing."""
    if dataset.data is None:
        where = "" if dataset.address is None else f"; its home is {dataset.address}"
        raise InputError(
            f"data set {dataset.id}: expected a table [data] in its spec, which names its files, "
            f"found none{where}"
        )
    return dataset.data


def import_files(dataset: Dataset, source: Path, folder: Path) -> tuple[Held, ...]:
    """Copy a file, or those of a folder that the data set names, into place.

    Raises InputError where there is none of them or one is not what the spec says.
    """
    data = declared_files(dataset)
    named = _named(dataset.id, data, source)
    with writing(folder / dataset.id):
        return tuple(
            _import(one, path, data_path(dataset, one, folder), data.format) for one, path in named
        )


def checked(path: Path, declared: DataFile, form: DataFormat) -> str:
    """The SHA-256 of a file that is what its spec says, and readable where that has no hash."""
    found = verify(path, declared)
    if declared.sha256 is None:
        for part in declared.by_part():
            read_file(path, part, form)
    return found


def place(partial: Path, path: Path) -> None:
    """Give a whole file its final name, which survives a power cut."""
    with partial.open("rb") as file:
        os.fsync(file.fileno())
    partial.replace(path)


def partial_path(path: Path) -> Path:
    """Where a file is while it is not whole."""
    return path.with_name(f"{path.name}.partial")


@contextlib.contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Hold a folder for this process; raises CapabilityError where that or a write fails."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as held:
            try:
                held.enter_context(exclusive_lock(folder))
            except CapabilityError:
                raise CapabilityError(
                    f"{folder}: expected to be the only command that writes here, got another one "
                    "in progress, or a disk without locks: wait for it, or name another --data"
                ) from None
            yield
    except OSError as error:
        wanted = "room for" if is_full(error) else "a folder that takes"
        raise CapabilityError(
            f"{folder}: expected {wanted} the files of a data set, got {error.strerror or error}: "
            "free some space or name another folder with --data, then run the same command again"
        ) from None


def _named(name: str, data: Files, source: Path) -> list[tuple[DataFile, Path]]:
    """The file that a path names, or those that are in a folder."""
    places = [(file, source / file.name if source.is_dir() else source) for file in data.files]
    found = [(file, path) for file, path in places if path.is_file() and path.name == file.name]
    if not found:
        known = ", ".join(file.name for file in data.files)
        other = "a folder without them" if source.is_dir() else source.name
        raise InputError(
            f"{source}: expected files of {name}, named {known}, got "
            f"{other if source.exists() else 'nothing'}: rename one that is as its publisher "
            "offers it, packed as that is"
        )
    return found


def _import(declared: DataFile, source: Path, path: Path, form: DataFormat) -> Held:
    try:
        found = checked(source, declared, form)
    except InputError as error:
        raise InputError(f"{error}; nothing was imported of it") from None
    partial = partial_path(path)
    try:
        shutil.copyfile(source, partial)
        # What was checked may have changed since, and a disk may lie.
        verify(partial, declared.model_copy(update={"sha256": found}))
        place(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    return Held(declared, path, found, "imported")
