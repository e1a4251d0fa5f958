"""The batches of one trial: which inputs a model takes, and how many different batches are made."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import onnx

from epochcost.errors import ModelError
from epochcost.graphs.parameters import DataInput, data_inputs
from epochcost.specs.model import Input, Model
from epochcost.train.teacher import Batch, Field, Teacher

TRAINING_STREAM = 0
HELD_OUT_STREAM = 1
# Enough different batches that neither a cache nor a model's memory holds them all for free,
# few enough that making them stays a small part of a trial.
POOL_BYTES = 32 * 2**20
POOL_BATCHES = 512
HELD_OUT_EXAMPLES = 1024


def example_fields(graph: onnx.ModelProto, model: Model, batch_size: int) -> tuple[Field, ...]:
    """The data inputs of a bound graph with the ranges of the model's spec, in graph order.

    Raises ModelError where spec and graph name different inputs, a shape is not bound, or the
    first dimension is not the batch.
    """
    wanted = data_inputs(graph)
    _require_same_names(model, [data.name for data in wanted])
    ranges = {declared.name: declared for declared in model.inputs}
    return tuple(_field(model, data, ranges[data.name], batch_size) for data in wanted)


def teacher_of(fields: Sequence[Field], model: Model, seed: int) -> Teacher:
    """The teacher of a model's task; two classes where the model is not trained."""
    target = None if model.training is None else model.training.target
    return Teacher(fields, 2 if target is None else target.classes or 2, seed)


def training_batches(teacher: Teacher, batch_size: int) -> Iterator[Batch]:
    """The pool that a trial cycles through, bounded in bytes and in number."""
    for index in range(pool_size(teacher.fields, batch_size)):
        yield teacher.draw(TRAINING_STREAM, index, batch_size)


def held_out_batches(teacher: Teacher, batch_size: int) -> Iterator[Batch]:
    """Batches that training never sees: ``HELD_OUT_EXAMPLES`` or one batch, the larger."""
    for index in range(max(1, HELD_OUT_EXAMPLES // batch_size)):
        yield teacher.draw(HELD_OUT_STREAM, index, batch_size)


def pool_size(fields: Iterable[Field], batch_size: int) -> int:
    """How many different batches fit in ``POOL_BYTES``: at least 2, at most ``POOL_BATCHES``."""
    example_bytes = sum(int(np.prod(field.shape)) * field.dtype.itemsize for field in fields)
    return min(POOL_BATCHES, max(2, POOL_BYTES // max(1, example_bytes * batch_size)))


def _field(model: Model, data: DataInput, declared: Input, batch_size: int) -> Field:
    shape = tuple(size for size in data.shape if isinstance(size, int))
    if len(shape) != len(data.shape) or shape[:1] != (batch_size,):
        raise ModelError(
            f"models/{model.graph}: input {data.name}: demanded a shape whose first dimension is "
            f"the batch and whose others are fixed; got {list(data.shape)} for batch {batch_size}"
        )
    low, high = declared.range
    return Field(
        name=data.name,
        shape=shape[1:],
        dtype=onnx.helper.tensor_dtype_to_np_dtype(data.elem_type),
        low=float(low),
        high=float(high),
    )


def _require_same_names(model: Model, wanted: Sequence[str]) -> None:
    declared = [item.name for item in model.inputs]
    for missing in (name for name in wanted if name not in declared):
        near = difflib.get_close_matches(missing, declared, n=1)
        hint = f"; did you mean {missing!r} by {near[0]!r}?" if near else ""
        raise ModelError(
            f"model {model.id}: demanded an entry in [[inputs]] for the graph's input {missing!r}; "
            f"got {declared}{hint}"
        )
    for extra in (name for name in declared if name not in wanted):
        raise ModelError(
            f"model {model.id}: demanded inputs of {model.graph}, which are {list(wanted)}; "
            f"got {extra!r} in [[inputs]]"
        )
