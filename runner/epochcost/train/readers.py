"""Files of examples and labels in the formats that data sets are published in.

Nothing of a file is run: CIFAR's pickles are read by a reader that knows arrays of bytes and no
more. Unpacking is left to ``archives``. What a file should be is the data set's spec; raises
InputError where it is not.
"""

from __future__ import annotations

import hashlib
import io
import lzma
import math
import pickle
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from epochcost.errors import InputError
from epochcost.specs.data import DataFile, DataFormat
from epochcost.train.archives import is_zip, members, most_unpacked, opened

Array = NDArray[Any]
# Of one file: examples, or labels, or both; None for what it has not.
Read = tuple[Array | None, Array | None]
_IDX_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_CIFAR_SHAPE = (3, 32, 32)
# What readers of damaged files raise.
_FAULTS = (
    *(OSError, EOFError, ValueError, KeyError, TypeError, IndexError, AttributeError),
    *(pickle.UnpicklingError, tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError),
    # A header that announces more than there is memory; a zip member that is encrypted.
    *(MemoryError, RuntimeError),
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
    """The file's SHA-256; raises InputError where size or hash are not those of the spec."""
    found = hashlib.sha256()
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            while chunk := file.read(2**20):
                found.update(chunk)
    except OSError as error:
        raise InputError(f"{path}: expected a file of data, got {error.strerror}") from None
    if declared.size_bytes is not None and size != declared.size_bytes:
        raise InputError(f"{path}: expected {declared.size_bytes:,} bytes, got {size:,}")
    if declared.sha256 is not None and found.hexdigest() != declared.sha256:
        raise InputError(
            f"{path}: expected SHA-256 {declared.sha256}, got {found.hexdigest()}: another file, "
            "or a damaged one; fetch it again"
        )
    return found.hexdigest()


def _array(data: BinaryIO, most_bytes: int) -> Array:
    """An array in the format of MNIST: magic number, sizes, numbers; nothing may follow."""
    zero, code, axes = int.from_bytes(data.read(2)), data.read(1), data.read(1)
    if zero or not axes or code[0] not in _IDX_TYPES:
        raise ValueError("no IDX header")
    shape = [int.from_bytes(data.read(4)) for _ in range(axes[0])]
    dtype = np.dtype(_IDX_TYPES[code[0]])
    announced = math.prod(shape) * dtype.itemsize
    if announced > most_bytes:
        raise ValueError(f"a header that announces {announced:,} bytes of at most {most_bytes:,}")
    content = data.read(announced + 1)
    if len(content) != announced:
        more = "more" if len(content) > announced else f"{len(content):,}"
        raise ValueError(f"{more} bytes of numbers where its header announces {announced:,}")
    return np.frombuffer(content, dtype).reshape(shape).astype(dtype.newbyteorder("="), copy=False)


def _idx(path: Path, declared: DataFile) -> Read:
    with opened(path, declared) as file:
        values = _array(file, most_unpacked(path, declared))
    return (None, values) if declared.holds == "labels" else (values, None)


def _cifar_binary(path: Path, declared: DataFile) -> Read:
    record = 1 + math.prod(_CIFAR_SHAPE)
    parts = []
    for content in members(path, declared):
        rows = np.frombuffer(content, np.uint8)
        if not len(rows) or len(rows) % record:
            raise ValueError(f"{len(rows):,} bytes, no whole number of records of {record}")
        parts.append(rows.reshape(-1, record))
    rows = np.concatenate(parts)
    return rows[:, 1:].reshape(-1, *_CIFAR_SHAPE), rows[:, 0]


def _cifar_python(path: Path, declared: DataFile) -> Read:
    found = [_batch(content) for content in members(path, declared)]
    examples, labels = zip(*found, strict=True)
    return np.concatenate(examples), np.concatenate(labels)


def _batch(content: bytes) -> tuple[Array, Array]:
    batch = _PlainUnpickler(io.BytesIO(content), encoding="bytes").load()
    values = {name.decode() if isinstance(name, bytes) else name: v for name, v in batch.items()}
    labels = values["labels" if "labels" in values else "fine_labels"]
    # Not `asarray`: a list of lists that each stand in it many times has more items than bytes.
    flat = np.fromiter(labels, np.int64, len(labels))
    return values["data"].array().reshape(-1, *_CIFAR_SHAPE), flat


class _PickledArray:
    """What NumPy pickles an array of bytes as; nothing is made of it but that."""

    def __init__(self, *_: object) -> None:
        self._state: tuple[Any, ...] = ()

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self._state = state

    def array(self) -> Array:
        """The array; raises ValueError for one of anything but bytes."""
        _version, shape, dtype, fortran, content = self._state
        if not isinstance(dtype, _PickledType) or dtype.name != "u1" or fortran:
            raise ValueError("an array of something else than bytes")
        if isinstance(content, str):
            content = content.encode("latin-1")
        return np.frombuffer(content, np.uint8).reshape(shape)


class _PickledType:
    def __init__(self, name: str | bytes = "", *_: object) -> None:
        self.name = name.decode() if isinstance(name, bytes) else name

    def __setstate__(self, state: object) -> None:
        """Byte order and the like, which bytes have not."""


class _PlainUnpickler(pickle.Unpickler):
    """Knows dictionaries, lists, numbers, texts and arrays of bytes, and runs nothing."""

    _KNOWN = MappingProxyType(
        {
            ("numpy.core.multiarray", "_reconstruct"): _PickledArray,
            ("numpy._core.multiarray", "_reconstruct"): _PickledArray,
            ("numpy", "ndarray"): _PickledArray,
            ("numpy", "dtype"): _PickledType,
            ("_codecs", "encode"): str.encode,
        }
    )

    def find_class(self, module: str, name: str) -> Any:
        """The stand-in of a name; raises UnpicklingError for any that is not NumPy's."""
        if (module, name) not in self._KNOWN:
            raise pickle.UnpicklingError(f"a pickle that names {module}.{name}")
        return self._KNOWN[module, name]


def _text(path: Path, declared: DataFile) -> Read:
    """Indices of characters among those of the text, in order."""
    with opened(path, declared) as file:
        text = file.read().decode("utf-8")
    codes = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    return np.unique(codes, return_inverse=True)[1].astype(np.int64), None


def _csv(path: Path, declared: DataFile) -> Read:
    """Rows of numbers, the last of which is the label; a header of names is left out."""
    with opened(path, declared) as file:
        first = file.readline().decode().split(",")[0].strip()
        headed = not first.replace(".", "", 1).replace("-", "").replace("e", "").isdigit()
        if headed and not file.readline():
            raise ValueError("no row of numbers")
    with opened(path, declared) as file:
        rows = np.loadtxt(file, delimiter=",", skiprows=int(headed), dtype=np.float64, ndmin=2)
    labels = rows[:, -1]
    if not np.array_equal(labels, np.floor(labels)):
        raise ValueError("labels in the last column that are no whole numbers")
    return rows[:, :-1].astype(np.float32), labels.astype(np.int64)


def _numpy(path: Path, declared: DataFile) -> Read:
    """An .npy of examples or labels, or an .npz whose arrays the spec lists: examples, labels."""
    if not is_zip(path):
        found = np.load(path, mmap_mode="r", allow_pickle=False)
        return (None, found) if declared.holds == "labels" else (found, None)
    if len(declared.members) != 2:
        raise ValueError("an .npz of which its spec does not name two members")
    names = tuple(f"{name}.npy" for name in declared.members)
    contents = members(path, declared.model_copy(update={"members": names}))
    examples, labels = (np.load(io.BytesIO(content), allow_pickle=False) for content in contents)
    return examples, labels


_READERS: Mapping[DataFormat, Callable[[Path, DataFile], Read]] = MappingProxyType(
    {
        "idx": _idx,
        "cifar-binary": _cifar_binary,
        "cifar-python": _cifar_python,
        "text": _text,
        "csv": _csv,
        "numpy": _numpy,
    }
)
