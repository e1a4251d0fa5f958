"""Load the examples of a data set from verified files, or generate them as its spec says.

Members of an archive are found by their file name in any folder, and not unpacked to disk.
"""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import lzma
import math
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epochcost.errors import CapabilityError, InputError
from epochcost.specs.reference_data import DataFile, DataFormat, Dataset, Files, Generated
from epochcost.train.pipeline import Examples, Part
from epochcost.train.state import digest

Array = NDArray[Any]
# Examples and labels of a file; None for a part that the file does not have.
Read = tuple[Array | None, Array | None]
_IDX_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_CIFAR_SHAPE = (3, 32, 32)
_GZIP = b"\x1f\x8b"
# Errors of reading damaged files; RuntimeError is raised by an encrypted zip.
_FAULTS = (
    *(OSError, EOFError, ValueError, KeyError, IndexError, MemoryError, RuntimeError),
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError),
)
# Trainings with different seeds are tested on the same examples.
_SPLIT_SEED = 0


def load_examples(dataset: Dataset, folder: Path, length: int, positions: int) -> Examples:
    """The examples of a data set; each example of a text data set has ``length`` characters.

    ``positions`` is the number of labels of an example. In a text, the label of a character is the
    next character; if ``positions`` is 1, only the last character has a label. Raises InputError if
    a file differs from the spec, and CapabilityError if a file is missing.
    """
    if dataset.generated is not None:
        return _made_up(dataset, dataset.generated, length, positions)
    if dataset.data is None:
        raise InputError(
            f"data set {dataset.id}: expected a table [data] or [generated] in its spec with the "
            "origin of its examples; found neither"
        )
    data = dataset.data
    paths = [_path_of_file(dataset, file, folder) for file in data.files]
    hashes = [verify(path, file) for path, file in zip(paths, data.files, strict=True)]
    read = [
        (file.part, read_file(path, file, data.format))
        for path, whole in zip(paths, data.files, strict=True)
        for file in whole.by_part()
    ]
    sha256 = hashlib.sha256(" ".join(hashes).encode()).hexdigest()
    parts = _parts_of_files(dataset, data, read, length, positions)
    return Examples(dataset.id, *parts, sha256, float(data.largest_value))


def data_path(dataset: Dataset, file: DataFile, folder: Path) -> Path:
    """The path to which `epochcost data fetch` and `epochcost data import` write a data file."""
    return folder / dataset.id / file.name


def _made_up(dataset: Dataset, declared: Generated, length: int, positions: int) -> Examples:
    held_out = dataset.held_out_examples
    assert held_out is not None, "the schema demands it"
    count = dataset.training_examples + held_out
    if declared.generator == "markov-text":
        rng = np.random.default_rng([declared.seed, 2])
        text = draw_text(markov_chain(declared), count * length + 1, rng)
        parts = _hold_out_last_windows(dataset, text, length, positions)
        return Examples(dataset.id, *parts, digest({"text": text}))
    images, labels = draw_images(declared, count)
    parts = _split(dataset, Part(images, labels), slice(held_out, None), slice(held_out))
    return Examples(dataset.id, *parts, digest({"images": images, "labels": labels}))


def _path_of_file(dataset: Dataset, file: DataFile, folder: Path) -> Path:
    path = data_path(dataset, file, folder)
    if not path.exists():
        raise CapabilityError(
            f"{path}: expected a file of the data set {dataset.id}, found none: `epochcost data "
            f"fetch {dataset.id}`, or `epochcost data import {dataset.id} PATH` for files at hand"
        )
    return path


def _parts_of_files(
    dataset: Dataset, data: Files, read: Sequence[tuple[str, Read]], length: int, positions: int
) -> tuple[Part, Part]:
    names, is_text = {name for name, _ in read}, data.format == "text"
    if names != {"both"} and (is_text or names != {"training", "held-out"}):
        other = "" if is_text else ', or files of the parts "training" and "held-out"'
        got = " and ".join(f'"{name}"' for name in sorted(names))
        raise InputError(
            f'data set {dataset.id}: expected part = "both" of every file{other}, got {got}'
        )
    if not is_text:
        return _training_and_held_out(dataset, data, read)
    codes = np.concatenate([codes for _, (codes, _) in read if codes is not None])
    # One alphabet of all files.
    text = np.unique(codes, return_inverse=True)[1].astype(np.int64)
    return _hold_out_last_windows(dataset, text, length, positions)


def _training_and_held_out(
    dataset: Dataset, data: Files, read: Sequence[tuple[str, Read]]
) -> tuple[Part, Part]:
    """Join the files' arrays to a training and a held-out part; "both" is split at random."""
    parts = {
        name: _joined_part(dataset, data, name, [arrays for part, arrays in read if part == name])
        for name in {part for part, _ in read}
    }
    if "both" not in parts:
        return parts["training"], parts["held-out"]
    order = np.random.default_rng(_SPLIT_SEED).permutation(len(parts["both"].labels))
    held_out = dataset.held_out_examples or 0
    return _split(dataset, parts["both"], order[held_out:], order[:held_out])


def _joined_part(dataset: Dataset, data: Files, name: str, read: Sequence[Read]) -> Part:
    """The examples and labels of all files of a part, one file after the other."""
    where = f"data set {dataset.id}: part {name}"
    examples, labels = (
        _joined(where, content, [array for array in arrays if array is not None])
        for content, arrays in zip(("examples", "labels"), zip(*read, strict=True), strict=True)
    )
    if data.shape:
        try:
            examples = examples.reshape(-1, *data.shape)
        except ValueError:
            raise InputError(
                f"{where}: expected examples of the shape {list(data.shape)}, got "
                f"{list(examples.shape[1:])}"
            ) from None
    if len(examples) != len(labels):
        got = f"{len(examples)} examples and {len(labels)} labels"
        raise InputError(f"{where}: expected as many labels as examples, got {got}")
    return Part(examples, labels)


def _joined(where: str, content: str, arrays: Sequence[Array]) -> Array:
    if not arrays:
        raise InputError(f"{where}: expected a file that holds the {content}")
    shapes = {array.shape[1:] for array in arrays}
    if len(shapes) > 1:
        got = " and ".join(str(list(shape)) for shape in sorted(shapes))
        raise InputError(f"{where}: expected {content} of the same shape in every file, got {got}")
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _hold_out_last_windows(
    dataset: Dataset, text: Array, length: int, positions: int
) -> tuple[Part, Part]:
    """Split a text into successive windows, and hold out the last ones."""
    if len(text) <= length:
        raise InputError(
            f"data set {dataset.id}: expected more than {length} characters, got {len(text)}"
        )
    windows = np.lib.stride_tricks.sliding_window_view(text, length + 1)[::length]
    whole = Part(windows[:, :-1], windows[:, 1:] if positions > 1 else windows[:, -1])
    cut = max(0, len(windows) - (dataset.held_out_examples or 0))
    return _split(dataset, whole, slice(cut), slice(cut, None))


def _split(dataset: Dataset, whole: Part, training: Any, held_out: Any) -> tuple[Part, Part]:
    """Split examples by slices or arrays of indices; raises InputError if none is for training."""
    if not len(whole.labels[training]):
        raise InputError(
            f"data set {dataset.id}: expected more examples than the {dataset.held_out_examples} "
            f"held out, got {len(whole.labels)}"
        )
    return (
        Part(whole.examples[training], whole.labels[training]),
        Part(whole.examples[held_out], whole.labels[held_out]),
    )


def read_file(path: Path, declared: DataFile, form: DataFormat) -> Read:
    """The examples, the labels or both in a file whose hash the caller has verified."""
    try:
        return _READERS[form](path, declared)
    except _FAULTS as error:
        fault = "more than there is memory for" if isinstance(error, MemoryError) else error
        raise InputError(
            f"{path}: expected a whole file in the format {form}, got {fault}"
        ) from None


def verify(path: Path, declared: DataFile) -> str:
    """The file's SHA-256; raises InputError if its size or hash differs from the spec."""
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


def _read_contents(path: Path, declared: DataFile) -> list[bytes]:
    """The contents of a plain file, or of the members of an archive in the order of the spec."""
    if not declared.members:
        content = path.read_bytes()
        return [gzip.decompress(content) if content.startswith(_GZIP) else content]
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            return [archive.read(name) for name in _member_paths(declared, archive.namelist())]
    with tarfile.open(path) as tar:
        files = [member.name for member in tar if member.isfile()]
        streams = [tar.extractfile(name) for name in _member_paths(declared, files)]
        return [stream.read() for stream in streams if stream is not None]


def _member_paths(declared: DataFile, paths: Iterable[str]) -> list[str]:
    by_name = {path.rpartition("/")[2]: path for path in paths}
    missing = [name for name in declared.members if name not in by_name]
    if missing:
        raise ValueError(f"no member {missing[0]}")
    return [by_name[name] for name in declared.members]


def _read_idx(path: Path, declared: DataFile) -> Read:
    """Read an array in MNIST's format: a magic number, the sizes of the axes, and the numbers."""
    content = b"".join(_read_contents(path, declared))
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
    contents = _read_contents(path, declared)
    for content in contents:
        if not content or len(content) % record:
            raise ValueError(f"{len(content):,} bytes, no whole number of records of {record}")
    rows = np.frombuffer(b"".join(contents), np.uint8).reshape(-1, record)
    return rows[:, 1:].reshape(-1, *_CIFAR_SHAPE), rows[:, 0]


def _read_text(path: Path, declared: DataFile) -> Read:
    """Read a text as the code points of its characters."""
    text = b"".join(_read_contents(path, declared)).decode("utf-8")
    if "\0" in text:
        raise ValueError("NUL characters: does the spec lack the `members` of an archive?")
    return np.frombuffer(text.encode("utf-32-le"), np.uint32), None


def _read_csv(path: Path, declared: DataFile) -> Read:
    """Read a CSV file with the label in the last column; a line of column names is skipped."""
    content = b"\n".join(_read_contents(path, declared)).removeprefix(codecs.BOM_UTF8)
    first, _, further = content.partition(b"\n")
    try:
        float(first.partition(b",")[0])
    except ValueError:
        content = further
    if not content.strip():
        raise ValueError("no row of numbers")
    rows = np.loadtxt(io.BytesIO(content), delimiter=",", dtype=np.float64, ndmin=2)
    labels = rows[:, -1]
    if not np.array_equal(labels, np.floor(labels)):
        raise ValueError("labels in the last column that are no whole numbers")
    return rows[:, :-1].astype(np.float32), labels.astype(np.int64)


_READERS: Mapping[DataFormat, Callable[[Path, DataFile], Read]] = {
    "idx": _read_idx,
    "cifar-binary": _cifar_binary,
    "text": _read_text,
    "csv": _read_csv,
}


# The classes of images: shapes by fill.
CLASSES = 10
_TEXTURES = 2
_NOISE = 12.0
_CHUNK = 512


def markov_chain(declared: Generated) -> NDArray[np.float64]:
    """Probabilities [first, second, next] of the character that follows two others.

    They are drawn from the Dirichlet distribution that a spec declares.
    """
    assert declared.characters is not None, "the schema demands it of chains"
    size = declared.characters
    rng = np.random.default_rng([declared.seed, 0])
    rows = rng.dirichlet(np.full(size, float(declared.concentration)), size * size)
    return rows.reshape(size, size, size)


def draw_text(
    probabilities: NDArray[np.float64], count: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw a text of ``count`` characters, as indices, from the probabilities of `markov_chain`."""
    bounds = np.cumsum(probabilities, axis=2)
    bounds[..., -1] = 1.0
    thresholds = rng.random(count)
    text = np.zeros(count, np.int64)
    first = second = 0
    for place in range(count):
        follower = int(np.searchsorted(bounds[first, second], thresholds[place], side="right"))
        text[place] = follower
        first, second = second, follower
    return text


def draw_images(declared: Generated, count: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Draw images [count, channels, side, side] and labels; a declared share of labels is wrong."""
    rng = np.random.default_rng([declared.seed, 1])
    labels = rng.integers(0, CLASSES, count)
    images = [
        _draw_shapes(declared, labels[at : at + _CHUNK], rng) for at in range(0, count, _CHUNK)
    ]
    wrong = rng.random(count) < float(declared.wrong_labels)
    wrong_labels = (labels + rng.integers(1, CLASSES, count)) % CLASSES
    return np.concatenate(images), np.where(wrong, wrong_labels, labels)


def _draw_shapes(
    declared: Generated, labels: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.uint8]:
    """Draw striped or chequered shapes of random place, size and angle on a noisy background."""
    assert declared.side is not None, "the schema demands it of images"
    count, side = len(labels), declared.side
    grid = np.arange(side) - (side - 1) / 2
    centre = rng.uniform(-0.15, 0.15, (2, count, 1, 1)) * side
    down, right = grid[:, None] - centre[0], grid[None, :] - centre[1]
    turn = rng.uniform(-0.5, 0.5, (count, 1, 1))
    along = np.cos(turn) * right + np.sin(turn) * down
    across = np.cos(turn) * down - np.sin(turn) * right
    size = rng.uniform(0.25, 0.33, (count, 1, 1)) * side
    inside = _shape_masks(along / size, across / size)[labels // _TEXTURES, np.arange(count)]
    period = side / 8
    striped = np.floor(2 * along / period) % 2
    chequered = (striped + np.floor(2 * across / period)) % 2
    dark = np.where((labels % _TEXTURES)[:, None, None] == 0, striped, chequered)
    shade = np.where(inside, 0.45 + 0.55 * dark, 0.0)[:, None]
    tint = rng.uniform(0.6, 1.0, (count, declared.channels, 1, 1))
    ground = rng.uniform(0.05, 0.25, (count, declared.channels, 1, 1))
    clean = 255 * np.where(inside[:, None], shade * tint, ground)
    return np.clip(clean + rng.normal(0, _NOISE, clean.shape), 0, 255).astype(np.uint8)


def _shape_masks(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Masks of the points (x, y) inside a disc, a square, a triangle, a cross and a ring."""
    radius = np.hypot(x, y)
    across = np.maximum(np.abs(x), np.abs(y))
    triangle = (y < 0.8) & (np.abs(x) * 1.7 < y + 0.9)
    cross = (across < 1) & (np.minimum(np.abs(x), np.abs(y)) < 0.35)
    return np.stack([radius < 1, across < 0.85, triangle, cross, (radius < 1) & (radius > 0.6)])
