"""The examples of a data set: its files verified and read, or what its spec makes up."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epochcost.errors import CapabilityError, InputError
from epochcost.specs.data import DataFile, Files, Generated
from epochcost.specs.reference_data import Dataset
from epochcost.train.generated import draw_images, markov_chain
from epochcost.train.pipeline import Examples, Part
from epochcost.train.readers import read_file, verify
from epochcost.train.state import digest

Array = NDArray[Any]
# Whatever is trained, with whichever seed, is tested on the same examples.
_SPLIT_SEED = 0


def load_examples(dataset: Dataset, folder: Path, length: int, positions: int) -> Examples:
    """A data set's examples; those of a text have ``length`` characters.

    ``folder`` has a folder for each data set. Of a text, each example is followed by as many
    characters as a model has ``positions`` to predict: every next one, or the last. Raises
    InputError where files are not what the spec says, and CapabilityError where there are none.
    """
    if dataset.generated is not None:
        return _made_up(dataset, dataset.generated, length, positions)
    if dataset.data is None:
        raise InputError(
            f"data set {dataset.id}: expected a table [data] or [generated] in its spec, which "
            "says where its examples are; found neither"
        )
    paths = {file.name: _place(dataset, dataset.data, file, folder) for file in dataset.data.files}
    hashes = [verify(paths[file.name], file) for file in dataset.data.files]
    files = tuple(part for file in dataset.data.files for part in file.by_part())
    read = [read_file(paths[file.name], file, dataset.data.format) for file in files]
    sha256 = hashlib.sha256(" ".join(hashes).encode()).hexdigest()
    if dataset.data.format == "text":
        text = np.concatenate([one for one, _ in read if one is not None])
        stride = dataset.data.stride or length
        overlapping = (length - 1) // stride
        parts = _split_in_order(dataset, _windows(text, length, positions, stride), overlapping)
    else:
        parts = _joined(dataset, dataset.data.model_copy(update={"files": files}), read)
    return Examples(dataset.id, *parts, sha256, float(dataset.data.largest_value))


def data_path(dataset: Dataset, file: DataFile, folder: Path) -> Path:
    """Where a file lies once it is fetched or imported."""
    return folder / dataset.id / file.name


def _made_up(dataset: Dataset, declared: Generated, length: int, positions: int) -> Examples:
    held_out = dataset.held_out_examples
    assert held_out is not None, "the schema demands it"
    count = dataset.training_examples + held_out
    if declared.generator == "markov-text":
        rng = np.random.default_rng([declared.seed, 2])
        text = markov_chain(declared).draw(count * length + 1, rng)
        parts = _split_in_order(dataset, _windows(text, length, positions, length), 0)
        return Examples(dataset.id, *parts, digest({"text": text}))
    images, labels = draw_images(declared, count)
    training = Part(images[held_out:], labels[held_out:])
    test = Part(images[:held_out], labels[:held_out])
    return Examples(dataset.id, training, test, digest({"images": images, "labels": labels}))


def _place(dataset: Dataset, data: Files, file: DataFile, folder: Path) -> Path:
    """Where a file is: as fetched or imported, else in the package that has it."""
    path = data_path(dataset, file, folder)
    if path.exists() or data.package is None:
        if not path.exists():
            raise CapabilityError(
                f"{path}: expected a file of the data set {dataset.id}, found none: `epochcost "
                f"data fetch {dataset.id}`, or `epochcost data import {dataset.id} PATH` for files "
                "at hand"
            )
        return path
    package, _, below = data.package.partition("/")
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise CapabilityError(
            f"data set {dataset.id}: expected the Python package {package}, which has its files, "
            f"or {path}; found neither"
        )
    return Path(spec.origin).parent / below / file.name


def _joined(
    dataset: Dataset, data: Files, read: list[tuple[Array | None, Array | None]]
) -> tuple[Part, Part]:
    """The parts of files that say which they are for, or a split of those that do not."""
    found = {
        part: Part(_of_part(data, read, part, 0), _of_part(data, read, part, 1))
        for part in ("training", "held-out", "both")
        if any(file.part == part for file in data.files)
    }
    if data.shape:
        found = {name: _shaped(dataset, data, part) for name, part in found.items()}
    if "both" not in found:
        if len(found) < 2:
            raise InputError(f"data set {dataset.id}: expected files of both parts in [data]")
        return found["training"], found["held-out"]
    whole, held_out = found["both"], dataset.held_out_examples or 0
    order = np.random.default_rng(_SPLIT_SEED).permutation(len(whole.labels))
    test, training = order[:held_out], order[held_out:]
    return (
        Part(whole.examples[training], whole.labels[training]),
        Part(whole.examples[test], whole.labels[test]),
    )


def _of_part(
    data: Files, read: list[tuple[Array | None, Array | None]], part: str, which: int
) -> Array:
    values = [
        arrays[which]
        for file, arrays in zip(data.files, read, strict=True)
        if file.part == part and arrays[which] is not None
    ]
    if not values:
        what = ("examples", "labels")[which]
        raise InputError(f"data: expected a file that holds the {what} of the part {part}")
    joined = [value for value in values if value is not None]
    return joined[0] if len(joined) == 1 else np.concatenate(joined)


def _shaped(dataset: Dataset, data: Files, part: Part) -> Part:
    try:
        return replace(part, examples=part.examples.reshape(-1, *data.shape))
    except ValueError:
        got = list(part.examples.shape[1:])
        raise InputError(
            f"data set {dataset.id}: expected examples of the shape {list(data.shape)}, got {got}"
        ) from None


def _windows(text: Array, length: int, positions: int, stride: int) -> Part:
    if len(text) <= length:
        raise InputError(f"text: expected more than {length} characters, got {len(text)}")
    windows = np.lib.stride_tricks.sliding_window_view(text, length + 1)[::stride]
    return Part(windows[:, :-1], windows[:, 1:] if positions > 1 else windows[:, -1])


def _split_in_order(dataset: Dataset, whole: Part, overlapping: int) -> tuple[Part, Part]:
    """The end of a text is held out, and what overlaps with it left out of training."""
    held_out = dataset.held_out_examples or 0
    if held_out + overlapping >= len(whole.labels):
        raise InputError(
            f"data set {dataset.id}: expected more examples than the {held_out} held out, got "
            f"{len(whole.labels)}"
        )
    cut = len(whole.labels) - held_out
    return (
        Part(whole.examples[: cut - overlapping], whole.labels[: cut - overlapping]),
        Part(whole.examples[cut:], whole.labels[cut:]),
    )
