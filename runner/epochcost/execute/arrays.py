"""The files of a job: graphs, and .npz archives of arrays with members of any name."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from epochcost.graphs.parameters import materialise, parameters, state
from epochcost.train.examples import Batch


def save_graph(graph: onnx.ModelProto, path: Path) -> Path:
    """Write a graph and return where."""
    path.write_bytes(graph.SerializeToString())
    return path


def save_stored_weights(graph: onnx.ModelProto, path: Path) -> Path | None:
    """The values that an ordinary file holds; None for a weightless one: the worker draws them."""
    held = (*parameters(graph), *state(graph))
    stored = {tensor.name for tensor in held if tensor.initial is None}
    if not stored:
        return None
    values = materialise(graph)
    return save_arrays({name: values[name] for name in sorted(stored)}, path)


def save_batches(batches: Iterable[Batch], path: Path) -> Path:
    """An array ``[pool, batch, ...]`` for each input and each target."""
    drawn = [{**batch.inputs, **batch.targets} for batch in batches]
    with zipfile.ZipFile(path, "w") as archive:
        for name in drawn[0]:
            _write_stacked(archive, name, [batch[name] for batch in drawn])
    return path


def _write_stacked(archive: zipfile.ZipFile, name: str, batches: Sequence[NDArray[Any]]) -> None:
    """An array of all batches, written one after the other: a large batch has no room for two."""
    first = np.asarray(batches[0])
    header = {
        "descr": np.lib.format.dtype_to_descr(first.dtype),
        "fortran_order": False,
        "shape": (len(batches), *first.shape),
    }
    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
        np.lib.format.write_array_header_1_0(member, header)
        for batch in batches:
            member.write(np.ascontiguousarray(batch).data)


def save_arrays(arrays: Mapping[str, NDArray[Any]], path: Path) -> Path:
    """An .npz; ``numpy.savez`` trips over a member called ``file``."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, values in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, values, allow_pickle=False)
    return path
