"""Download a data set's files with pooch, or copy them to the data set's folder, and check them."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pooch

from epochcost import __version__
from epochcost.errors import CapabilityError, InputError
from epochcost.specs.reference_data import DataFile, DataFormat, Dataset, Files
from epochcost.train.datasets import data_path, read_file, verify

_CHUNK_BYTES = 2**18
_SILENCE_SECONDS = 60
# Without this header, a server may send a compressed file, which has another hash.
_HEADERS = {"User-Agent": f"epochcost/{__version__}", "Accept-Encoding": "identity"}


@dataclass(frozen=True)
class PlacedFile:
    """A checked file in the folder of its data set; ``origin`` says how it came there."""

    declared: DataFile
    path: Path
    sha256: str
    origin: Literal["fetched", "imported", "is there"]


def fetch_files(dataset: Dataset, folder: Path, say: Callable[[str], None]) -> Iterator[PlacedFile]:
    """Download a data set's files that ``folder`` lacks or that contradict the spec.

    Yields every file. Raises InputError if a file has no address or a download contradicts the
    spec, and CapabilityError if a download fails.
    """
    data = _declared_files(dataset)
    for file in data.files:
        if file.address is None:
            home = "" if dataset.address is None else f" (its home is {dataset.address})"
            raise InputError(
                f"data set {dataset.id}: expected an address of {file.name} in its spec, found "
                f"none{home}: if you have it, `epochcost data import {dataset.id} PATH`"
            )
    for file in data.files:
        path = data_path(dataset, file, folder)
        try:
            present = verify(path, file) if path.exists() else None
        except InputError:
            path.unlink()
            present = None
        if present is None:
            say(f"fetching {file.address}")
            _download(file, path)
            sha256 = _verified_download_sha256(path, file, data.format)
            yield PlacedFile(file, path, sha256, "fetched")
        else:
            yield PlacedFile(file, path, present, "is there")


def import_files(dataset: Dataset, source: Path, folder: Path) -> tuple[PlacedFile, ...]:
    """Copy files of a data set to its folder; ``source`` is a file, or a folder with such files.

    Raises InputError if no file is found or a file contradicts the spec, and CapabilityError if the
    folder cannot be written.
    """
    data = _declared_files(dataset)
    matches = _declared_files_at(dataset.id, data, source)
    placed = []
    for file, origin in matches:
        try:
            sha256 = _verified_sha256(origin, file, data.format)
        except InputError as error:
            raise InputError(f"{error}; the file was not imported") from None
        path = data_path(dataset, file, folder)
        partial = path.with_name(f"{path.name}.partial")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(origin, partial)
            partial.replace(path)
        except OSError as error:
            raise CapabilityError(
                f"{path.parent}: expected a folder that takes the files of a data set, got "
                f"{error.strerror or error}: free some space or name another folder with --data"
            ) from None
        finally:
            with contextlib.suppress(OSError):
                partial.unlink()
        placed.append(PlacedFile(file, path, sha256, "imported"))
    return tuple(placed)


def _declared_files(dataset: Dataset) -> Files:
    if dataset.data is None:
        home = "" if dataset.address is None else f"; its home is {dataset.address}"
        raise InputError(
            f"data set {dataset.id}: expected a table [data] in its spec, which names its files, "
            f"found none{home}"
        )
    return dataset.data


def _download(file: DataFile, path: Path) -> None:
    assert file.address is not None, "fetch_files checks addresses first"
    pooch.get_logger().setLevel("WARNING")
    downloader = pooch.HTTPDownloader(
        chunk_size=_CHUNK_BYTES, timeout=_SILENCE_SECONDS, headers=_HEADERS
    )
    try:
        pooch.retrieve(file.address, file.sha256, path.name, path.parent, downloader=downloader)
    except OSError as error:
        raise CapabilityError(
            f"{file.address}: expected a file to download to {path.parent}, got "
            f"{error.strerror or error}: check the network and the room on the disk, then run the "
            "same command again; `epochcost data import` takes a file at hand"
        ) from None
    except ValueError as error:
        raise InputError(f"{file.address}: {' '.join(str(error).split())}") from None


def _verified_download_sha256(path: Path, file: DataFile, form: DataFormat) -> str:
    try:
        return _verified_sha256(path, file, form)
    except InputError as error:
        path.unlink()
        raise InputError(f"{error}; the download of {file.address} was removed") from None


def _verified_sha256(path: Path, file: DataFile, form: DataFormat) -> str:
    sha256 = verify(path, file)
    # Without a hash in the spec, the contents must at least be readable.
    if file.sha256 is None:
        for part in file.by_part():
            read_file(path, part, form)
    return sha256


def _declared_files_at(dataset_id: str, data: Files, source: Path) -> list[tuple[DataFile, Path]]:
    places = [(file, source / file.name if source.is_dir() else source) for file in data.files]
    matches = [(file, path) for file, path in places if path.is_file() and path.name == file.name]
    if not matches:
        names = ", ".join(file.name for file in data.files)
        got = "a folder without them" if source.is_dir() else source.name
        raise InputError(
            f"{source}: expected files of {dataset_id}, named {names}, got "
            f"{got if source.exists() else 'nothing'}: give a file its publisher's name, and do "
            "not unpack it"
        )
    return matches
