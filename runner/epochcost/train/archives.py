"""What is in a data set's file: its content unpacked, or the members that its spec names.

Nothing is written to disk, so that no member's path or link leads anywhere: members are known by
their last name, and what is no regular file is passed by. Reading stops at what the spec lets a
file unpack to, before more is held in memory. What the bytes mean is left to ``readers``; faults
are raised as ValueError or as the modules for archives raise them, which ``readers`` words.
"""

from __future__ import annotations

import bz2
import contextlib
import functools
import gzip
import io
import lzma
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, cast

from epochcost.specs.data import DataFile

_ZIP = b"PK\x03\x04"
_UNPACKERS: Mapping[bytes, Callable[[BinaryIO], Any]] = MappingProxyType(
    {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open}
)
# Of a file whose spec does not say what it unpacks to; readers need some twenty times as much.
_MOST_TIMES, _MOST_BESIDES, _MOST_UNDECLARED = 100, 2**20, 2**26


@contextlib.contextmanager
def opened(path: Path, declared: DataFile) -> Iterator[BinaryIO]:
    """The content: of the members one after another, or of the file, unpacked while it is read."""
    if declared.members:
        yield io.BytesIO(b"".join(members(path, declared)))
        return
    with path.open("rb") as file:
        yield _unpacked(file, most_unpacked(path, declared))


def members(path: Path, declared: DataFile) -> list[bytes]:
    """The members that the spec names, in its order; of a plain file its content."""
    if not declared.members:
        with opened(path, declared) as file:
            return [file.read()]
    found: dict[str, bytes] = {}
    left = most_unpacked(path, declared)
    for member, size, read in _regular(path, left):
        name = member.replace("\\", "/").rpartition("/")[2]
        if name not in declared.members:
            continue
        left -= size
        if name in found or left < 0:
            fault = f"two members {name}" if name in found else f"a member {name} of {size:,} bytes"
            raise ValueError(f"{fault}, beyond what its spec says")
        found[name] = read()
    missing = [name for name in declared.members if name not in found]
    if missing:
        raise ValueError(f"no member {missing[0]}")
    return [found[name] for name in declared.members]


def is_zip(path: Path) -> bool:
    """Whether a file begins as a zip archive."""
    with path.open("rb") as file:
        return file.read(len(_ZIP)) == _ZIP


def _regular(path: Path, most: int) -> Iterator[tuple[str, int, Callable[[], bytes]]]:
    """The regular files in an archive: name, size, and what reads it before the next is asked."""
    if is_zip(path):
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                kind = stat.S_IFMT(info.external_attr >> 16)
                if not info.is_dir() and kind in (0, stat.S_IFREG):
                    yield info.filename, info.file_size, functools.partial(archive.read, info)
        return
    with path.open("rb") as file, tarfile.open(fileobj=_unpacked(file, most), mode="r|") as tar:
        for member in tar:
            content = tar.extractfile(member) if member.isreg() else None
            if content is not None:
                yield member.name, member.size, content.read


def most_unpacked(path: Path, declared: DataFile) -> int:
    """The most bytes that a file may unpack to: as declared, else bounded by its own length.

    A file that is not packed has its own length.
    """
    length = path.stat().st_size
    guess = min(_MOST_TIMES * length + _MOST_BESIDES, _MOST_UNDECLARED)
    return declared.unpacked_bytes or max(guess, length)


def _unpacked(file: BinaryIO, most: int) -> BinaryIO:
    start = file.read(8)
    file.seek(0)
    for mark, unpacker in _UNPACKERS.items():
        if start.startswith(mark):
            return cast("BinaryIO", io.BufferedReader(_Bounded(unpacker(file), most), 2**18))
    return file


class _Bounded(io.RawIOBase):
    """Another stream, of which no more than so many bytes are read."""

    def __init__(self, inner: BinaryIO, most: int) -> None:
        self._inner, self._left, self._most = inner, most, most

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """As any stream's; raises ValueError beyond the bound."""
        content = self._inner.read(len(buffer))
        self._left -= len(content)
        if self._left < 0:
            raise ValueError(
                f"more than the {self._most:,} bytes that it may unpack to: where it is right, "
                "give its unpacked_bytes in the data set's spec"
            )
        buffer[: len(content)] = content
        return len(content)
