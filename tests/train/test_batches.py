"""Batches: fitted to a graph's inputs, bounded in number, and apart from the held-out ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcost.errors import ModelError
from epochcost.graphs.binding import bind_dimensions
from epochcost.graphs.loading import load_model
from epochcost.specs.model import Input, Model
from epochcost.train.batches import (
    POOL_BATCHES,
    POOL_BYTES,
    example_fields,
    held_out_batches,
    pool_size,
    teacher_of,
    training_batches,
)
from epochcost.train.teacher import Field

MODELS = Path(__file__).parents[2] / "models"


def spec(*inputs: str, **changes: Any) -> Model:
    """A model spec with these inputs."""
    document = {
        "id": "net",
        "name": "Net",
        "task": "digits",
        "example": "image",
        "graph": "mnist_cnn.onnx",
        "inputs": [Input(name=name) for name in inputs],
        "source": "a paper",
    }
    return Model.model_validate(document | changes)


def bound(batch_size: int) -> onnx.ModelProto:
    """The MNIST CNN at one batch size."""
    return bind_dimensions(load_model(MODELS / "mnist_cnn.onnx"), {"batch": batch_size})


def test_fields_are_the_graphs_data_inputs() -> None:
    """Shape and type come from the graph, the range from the spec; parameters are not fed."""
    assert example_fields(bound(4), spec("image"), 4) == (
        Field("image", (1, 28, 28), np.dtype(np.float32), 0.0, 1.0),
    )


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        (("imagee",), "did you mean 'image'"),
        (("pixels",), r"demanded an entry in \[\[inputs\]\] for the graph's input 'image'"),
        (("image", "mask"), "got 'mask'"),
    ],
)
def test_other_names_in_the_spec_are_refused(inputs: tuple[str, ...], words: str) -> None:
    """The message names the input and what the graph wants."""
    with pytest.raises(ModelError, match=words):
        example_fields(bound(4), spec(*inputs), 4)


def test_another_batch_size_than_the_graphs_is_refused() -> None:
    """A graph of fixed batch cannot serve a trial of another."""
    with pytest.raises(ModelError, match="first dimension is the batch"):
        example_fields(bound(4), spec("image"), 8)


@given(
    st.lists(st.tuples(st.integers(1, 300), st.integers(1, 300)), min_size=1, max_size=3),
    st.integers(1, 4096),
)
def test_the_pool_is_bounded(shapes: list[tuple[int, int]], batch_size: int) -> None:
    """At least two different batches, at most the bytes and the number allowed."""
    fields = [Field(str(i), shape, np.dtype(np.float32), 0, 1) for i, shape in enumerate(shapes)]
    count = pool_size(fields, batch_size)
    batch_bytes = batch_size * sum(4 * a * b for a, b in shapes)
    assert 2 <= count <= POOL_BATCHES
    assert count == 2 or count * batch_bytes <= POOL_BYTES


def test_held_out_batches_are_not_trained_on() -> None:
    """No held-out example is in the pool."""
    field = Field("x", (64, 64), np.dtype(np.float32), 0.0, 1.0)
    teacher = teacher_of([field], spec("x"), 3)
    trained = {row.tobytes() for b in training_batches(teacher, 512) for row in b.inputs["x"]}
    held_out = {row.tobytes() for b in held_out_batches(teacher, 512) for row in b.inputs["x"]}
    assert len(held_out) == 1024
    assert not trained & held_out
