"""The examples of an epoch as files: an array that can be mapped into memory for each graph input.

Drawn as the batches of a trial are, from a stream of their own. A data set larger than
``MOST_BYTES`` is stored in part, and its epoch meets the stored examples again and again.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from epochcost.train.examples import Field, Target
from epochcost.train.teacher import Teacher

EPOCH_STREAM = 2
# More than the caches of any CPU, and drawn in seconds.
MOST_BYTES = 512 * 2**20
# So much is drawn at once.
_CHUNK_BYTES = 16 * 2**20


def examples_on_disk(teacher: Teacher, examples: int, most_bytes: int = MOST_BYTES) -> int:
    """How many of an epoch's examples are stored: all of them, or what ``most_bytes`` hold."""
    return max(1, min(examples, most_bytes // max(1, _example_bytes(teacher))))


def write_epoch(teacher: Teacher, count: int, folder: Path) -> Mapping[str, Path]:
    """Write ``count`` examples into ``folder``: by graph input the .npy ``[count, ...]``."""
    arrays: tuple[Field | Target, ...] = (*teacher.fields, *teacher.targets)
    paths = {array.name: folder / f"epoch-{number}.npy" for number, array in enumerate(arrays)}
    files = {array.name: _empty(paths[array.name], array, count) for array in arrays}
    size = max(1, min(count, _CHUNK_BYTES // max(1, _example_bytes(teacher))))
    for index, begin in enumerate(range(0, count, size)):
        end = min(begin + size, count)
        batch = teacher.draw(EPOCH_STREAM, index, end - begin)
        for name, values in {**batch.inputs, **batch.targets}.items():
            files[name][begin:end] = values.reshape(end - begin, *files[name].shape[1:])
    for file in files.values():
        file.flush()
    return paths


def _example_bytes(teacher: Teacher) -> int:
    arrays: tuple[Field | Target, ...] = (*teacher.fields, *teacher.targets)
    return sum(array.example_bytes for array in arrays)


def _empty(path: Path, array: Field | Target, count: int) -> np.memmap:
    return np.lib.format.open_memmap(path, "w+", array.dtype, (count, *array.shape))
