"""Files of examples and labels in the formats that data sets are published in.

Nothing is unpacked to disk: members of an archive are read by their last name. The data set's spec
says how a file should be; readers raise InputError if it is not.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import math
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epochcost.errors import InputError
from epochcost.specs.data import DataFile, DataFormat

Array = NDArray[Any]
# Examples and labels of one file; None for the part that it does not have.
Read = tuple[Array | None, Array | None]
_IDX_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_CIFAR_SHAPE = (3, 32, 32)
_GZIP = b"\x1f\x8b"
# What readers of damaged files raise; RuntimeError of a zip that is encrypted.
_FAULTS = (
    *(OSError, EOFError, ValueError, KeyError, IndexError, MemoryError, RuntimeError),
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error),
)


def read_file(path: Path, declared: DataFile, form: DataFormat) -> Read:
    """The examples or labels of a file that was verified by ``verify``."""
    try:
        return _READERS[form](path, declared)
    except _FAULTS as error:
        fault = "more than there is memory for" if isinstance(error, MemoryError) else error
        raise InputError(
            f"{path}: expected a whole file in the format {form}, got {fault}"
        ) from None


def verify(path: Path, declared: DataFile) -> str:
    """The file's SHA-256; raises InputError if its size or hash are not those of the spec."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path}: expected a file of data, got {error.strerror}") from None
    if declared.size_bytes is not None and size != declared.size_bytes:
        raise InputError(f"{path}: expected {declared.size_bytes:,} bytes, got {size:,}")
    if declared.sha256 is not None and sha256 != declared.sha256:
        raise InputError(
            f"{path}: expected SHA-256 {declared.sha256}, got {sha256}: another file, "
            "or a damaged one; fetch it again"
        )
    return sha256


def _contents(path: Path, declared: DataFile) -> list[bytes]:
    """The members that the spec names, in its order; of any other file its content, unpacked."""
    if not declared.members:
        content = path.read_bytes()
        return [gzip.decompress(content) if content.startswith(_GZIP) else content]
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            return [archive.read(name) for name in _paths(declared, archive.namelist())]
    with tarfile.open(path) as tar:
        files = [member.name for member in tar if member.isfile()]
        streams = [tar.extractfile(name) for name in _paths(declared, files)]
        return [stream.read() for stream in streams if stream is not None]


def _paths(declared: DataFile, paths: Iterable[str]) -> list[str]:
    """The path in an archive of each member that the spec names."""
    by_name = {path.rpartition("/")[2]: path for path in paths}
    missing = [name for name in declared.members if name not in by_name]
    if missing:
        raise ValueError(f"no member {missing[0]}")
    return [by_name[name] for name in declared.members]


def _idx(path: Path, declared: DataFile) -> Read:
    """An array in the format of MNIST: magic number, sizes, numbers; nothing may follow."""
    content = b"".join(_contents(path, declared))
    if content[:2] != b"\0\0" or content[2] not in _IDX_TYPES or not content[3]:
        raise ValueError("no IDX header")
    start = 4 + 4 * content[3]
    shape = [int.from_bytes(content[place : place + 4]) for place in range(4, start, 4)]
    dtype = np.dtype(_IDX_TYPES[content[2]])
    announced = math.prod(shape) * dtype.itemsize
    if len(content) != start + announced:
        got = f"{len(content) - start:,} bytes of numbers"
        raise ValueError(f"{got} where its header announces {announced:,}")
    values = np.frombuffer(content, dtype, offset=start).reshape(shape)
    values = values.astype(dtype.newbyteorder("="), copy=False)
    return (None, values) if declared.holds == "labels" else (values, None)


def _cifar_binary(path: Path, declared: DataFile) -> Read:
    record = 1 + math.prod(_CIFAR_SHAPE)
    contents = _contents(path, declared)
    for content in contents:
        if not content or len(content) % record:
            raise ValueError(f"{len(content):,} bytes, no whole number of records of {record}")
    rows = np.frombuffer(b"".join(contents), np.uint8).reshape(-1, record)
    return rows[:, 1:].reshape(-1, *_CIFAR_SHAPE), rows[:, 0]


def _text(path: Path, declared: DataFile) -> Read:
    """Indices of characters among those of the text, in order."""
    text = b"".join(_contents(path, declared)).decode("utf-8")
    codes = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    return np.unique(codes, return_inverse=True)[1].astype(np.int64), None


def _csv(path: Path, declared: DataFile) -> Read:
    """Rows of numbers, the last of which is the label; a header of names is left out."""
    content = b"".join(_contents(path, declared))
    first = content.partition(b"\n")[0].decode().split(",")[0].strip()
    headed = not first.replace(".", "", 1).replace("-", "").replace("e", "").isdigit()
    if headed:
        content = content.partition(b"\n")[2]
    if not content.strip():
        raise ValueError("no row of numbers")
    rows = np.loadtxt(io.BytesIO(content), delimiter=",", dtype=np.float64, ndmin=2)
    labels = rows[:, -1]
    if not np.array_equal(labels, np.floor(labels)):
        raise ValueError("labels in the last column that are no whole numbers")
    return rows[:, :-1].astype(np.float32), labels.astype(np.int64)


def _numpy(path: Path, declared: DataFile) -> Read:
    """An .npy of examples or labels, or an .npz whose arrays the spec lists: examples, labels."""
    if not zipfile.is_zipfile(path):
        array = np.load(path, mmap_mode="r", allow_pickle=False)
        return (None, array) if declared.holds == "labels" else (array, None)
    if len(declared.members) != 2:
        raise ValueError("an .npz of which its spec does not name two members")
    with np.load(path, allow_pickle=False) as arrays:
        return arrays[declared.members[0]], arrays[declared.members[1]]


_READERS: Mapping[DataFormat, Callable[[Path, DataFile], Read]] = MappingProxyType(
    {"idx": _idx, "cifar-binary": _cifar_binary, "text": _text, "csv": _csv, "numpy": _numpy}
)
