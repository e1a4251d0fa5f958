"""Generate a trial's batches, a pool: arrays [batches, batch size, ...] by input or target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from epochcost.errors import ModelError
from epochcost.plan.binding import input_misfits
from epochcost.specs.model import Input, Model, Training
from epochcost.specs.training import LossTerm
from epochcost.train.teacher import InputField, Kind, TargetField, Teacher
from epochcost.units import memory
from onnxstep import TrainingStep
from onnxstep.graphs.parameters import DataInput, data_inputs

TRAINING_STREAM = 0
HELD_OUT_STREAM = 1
# Enough different batches to exceed every cache, few enough to generate in a small part of a trial.
POOL_BYTES = 32 * 2**20
POOL_BATCHES = 512
_HELD_BATCHES = 3
HELD_OUT_EXAMPLES = 1024
# A few seconds on a few cores, before the timed steps and after them.
HELD_OUT_FLOPS = 10**11


def example_fields(graph: onnx.ModelProto, model: Model, batch_size: int) -> tuple[InputField, ...]:
    """The data inputs of a graph with fixed shapes, each with its range of values from the spec.

    Carried inputs are not data. Raises ModelError if spec and graph name different inputs, a range
    exceeds the axis that the values index, a shape is not fixed, or the first dimension is not the
    batch.
    """
    for misfit in input_misfits(graph, model):
        raise ModelError(f"model {model.id}: {misfit}")
    inputs = {data.name: data for data in data_inputs(graph)}
    fed = {declared.name: declared for declared in model.fed_to(inputs)}
    return tuple(
        _field(model, data, fed[name], batch_size) for name, data in inputs.items() if name in fed
    )


def step_targets(
    step: TrainingStep, graph: onnx.ModelProto, model: Model, training: Training, batch_size: int
) -> tuple[TargetField, ...]:
    """The targets of a step's loss terms; ``graph`` is the graph from which the step was made.

    Raises ModelError if a declared target does not fit the output with which it is compared.
    """
    shapes = _shapes([*step.model.graph.input, *graph.graph.output])
    return tuple(
        _target(model, term, name, shapes, batch_size)
        for term, name in zip(training.terms, step.targets, strict=True)
        if name is not None
    )


def training_pool(
    teacher: Teacher, batch_size: int, room_bytes: int | None = None
) -> Mapping[str, NDArray[Any]]:
    """Generate the ``pool_size`` batches that a trial repeats in a cycle, by input or target.

    Raises MemoryError if ``room_bytes`` is too small for two batches and one being copied.
    """
    batch_bytes = batch_size * teacher.example_bytes
    if room_bytes is not None and _HELD_BATCHES * batch_bytes > room_bytes:
        needed = memory(_HELD_BATCHES * batch_bytes)
        raise MemoryError(f"{_HELD_BATCHES} batches of {batch_size} take {needed}")
    return _draw_pool(teacher, TRAINING_STREAM, batch_size, pool_size(batch_bytes))


def held_out_pool(
    teacher: Teacher, batch_size: int, batch_flops: int = 0
) -> Mapping[str, NDArray[Any]]:
    """Batches that training never sees, with about ``HELD_OUT_EXAMPLES`` examples in total.

    There are fewer batches, but at least one, if their evaluation exceeds ``HELD_OUT_FLOPS``.
    """
    affordable = HELD_OUT_FLOPS // max(1, batch_flops)
    count = max(1, min(HELD_OUT_EXAMPLES // batch_size, affordable))
    return _draw_pool(teacher, HELD_OUT_STREAM, batch_size, count)


def _draw_pool(
    teacher: Teacher, stream: int, batch_size: int, count: int
) -> dict[str, NDArray[Any]]:
    """Generate ``count`` batches: for each input or target, an array [count, batch size, ...]."""
    pool: dict[str, NDArray[Any]] = {}
    for index in range(count):
        for name, values in teacher.draw(stream, index, batch_size).items():
            if index == 0:
                pool[name] = np.empty((count, *values.shape), values.dtype)
            pool[name][index] = values
    return pool


def pool_size(batch_bytes: int) -> int:
    """Number of batches that fit in ``POOL_BYTES``: at least 2, at most ``POOL_BATCHES``."""
    return min(POOL_BATCHES, max(2, POOL_BYTES // max(1, batch_bytes)))


def _field(model: Model, data: DataInput, declared: Input, batch_size: int) -> InputField:
    shape = tuple(size for size in data.shape if isinstance(size, int))
    if len(shape) != len(data.shape) or shape[:1] != (batch_size,):
        raise ModelError(
            f"models/{model.graph}: input {data.name}: expected a shape whose first dimension is "
            f"the batch and whose others are fixed, got {list(data.shape)} for batch {batch_size}"
        )
    low, high = declared.range
    return InputField(
        name=data.name,
        shape=shape[1:],
        dtype=onnx.helper.tensor_dtype_to_np_dtype(data.elem_type),
        low=float(low),
        high=float(high),
        kind=_kind(declared),
    )


def _kind(declared: Input) -> Kind:
    if declared.value is not None:
        return "constant"
    return "numbers" if declared.vocabulary is None else "tokens"


def _shapes(values: Sequence[onnx.ValueInfoProto]) -> Mapping[str, tuple[int, ...]]:
    return {
        value.name: tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim)
        for value in values
    }


def _target(
    model: Model, term: LossTerm, name: str, shapes: Mapping[str, tuple[int, ...]], batch_size: int
) -> TargetField:
    declared, shape, scores = term.target, shapes[name], shapes[term.output]
    assert declared is not None, "the schema demands a target of every loss that compares"
    where = f"model {model.id}: {term.loss} of output {term.output!r}"
    if not shape or shape[0] % batch_size:
        raise ModelError(
            f"{where}: expected an output whose first dimension is the batch, {batch_size}, or a "
            f"multiple, got shape {list(scores)}"
        )
    binary = term.loss == "sigmoid_cross_entropy"
    if declared.classes is not None and not binary and declared.classes > scores[-1]:
        raise ModelError(
            f"{where}: expected at most as many classes in `target` as the output has scores, "
            f"{scores[-1]} of shape {list(scores)}, got {declared.classes}"
        )
    whole = shape[0] == batch_size
    return TargetField(
        name=name,
        shape=shape[1:] if whole else (shape[0] // batch_size, *shape[1:]),
        dtype=np.dtype(np.float32 if binary or declared.classes is None else np.int64),
        classes=declared.classes,
        low=float(declared.low or 0),
        high=float(1 if declared.high is None else declared.high),
        ignored_share=float(declared.ignored_share),
        merged=not whole,
    )
