"""The arrays of a job, checked against the graph that will take them.

Owns reading .npz files and the order in which an input finds its value; binding is left to
``stepping``.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort

from epochcost.graphs.loading import load_model
from epochcost.graphs.parameters import materialise
from epochcost.measure.job import Job, JobError
from epochcost.measure.stepping import Array, Inputs, TensorType, tensor_type


def load_arrays(path: Path) -> dict[str, Array]:
    """Read the arrays of an .npz; raises JobError when it cannot be read."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise JobError(f"{path}: demanded an .npz of arrays; {error}") from error


def initial_parameters(job: Job) -> dict[str, Array]:
    """Make the parameters' first values: drawn from the model's metadata, stored ones on top."""
    drawn = materialise(load_model(job.model or job.graph), job.seed)
    return {**drawn, **(load_arrays(job.initial) if job.initial else {})}


def graph_inputs(job: Job, parameters: Mapping[str, Array], infos: Iterable[ort.NodeArg]) -> Inputs:
    """Give each graph input its value: batch, series, scalar, parameter, or carried state's fill.

    Raises JobError for an input without a value, a pool without an input, or a shape or type that
    is not the graph's.
    """
    types = {info.name: tensor_type(info) for info in infos}
    batches = _pools(job, job.batches, types)
    series = {} if job.series is None else _pools(job, job.series, types)
    constants = {
        name: _constant(job, parameters, name, kind)
        for name, kind in types.items()
        if name not in batches and name not in series
    }
    return Inputs(batches, constants, series)


def _pools(job: Job, path: Path, types: Mapping[str, TensorType]) -> dict[str, Array]:
    """Arrays whose first axis is that of the steps."""
    pools = load_arrays(path)
    unknown = sorted(pools.keys() - types.keys())
    if unknown:
        raise JobError(f"{path}: no input of {job.graph} is called {unknown[0]!r}")
    for name, pool in pools.items():
        _require_type(path, name, (pool.shape[1:], pool.dtype), types[name])
    return pools


def _constant(
    job: Job,
    parameters: Mapping[str, Array],
    name: str,
    kind: TensorType,
) -> Array:
    shape, dtype = kind
    if name in job.scalars:
        return _filled(shape, job.scalars[name], dtype)
    if name in parameters:
        value = parameters[name]
        _require_type(job.initial or job.graph, name, (value.shape, value.dtype), kind)
        return value
    for carried in job.carried:
        if carried.input == name:
            return _filled(shape, carried.fill, dtype)
    raise JobError(
        f"{job.graph}: input {name!r} has no value: demanded it among the batches, the series, "
        "the scalars, the parameters or the carried values"
    )


def _filled(shape: tuple[int, ...], number: float, dtype: np.dtype[Any]) -> Array:
    """The number everywhere, of which memory holds one: moments are twice as large as a model."""
    return np.broadcast_to(np.asarray(number, dtype), shape)


def _require_type(path: Path, name: str, got: TensorType, wanted: TensorType) -> None:
    if got != wanted:
        raise JobError(
            f"{path}: {name!r}: demanded {wanted[1]} {list(wanted[0])} for one step; "
            f"got {got[1]} {list(got[0])}"
        )
