"""Generated batches match the graph's inputs, are bounded, and keep held-out data apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcost.errors import ModelError
from epochcost.specs.model import Input, Model
from epochcost.train.batches import (
    HELD_OUT_EXAMPLES,
    HELD_OUT_FLOPS,
    POOL_BATCHES,
    POOL_BYTES,
    example_fields,
    held_out_pool,
    pool_size,
    training_pool,
)
from epochcost.train.teacher import InputField, TargetField, Teacher
from onnxstep.graphs.binding import bind_dimensions
from onnxstep.graphs.loading import load_model

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
    """Shape and type come from the graph, the range from the spec."""
    assert example_fields(bound(4), spec("image"), 4) == (
        InputField("image", (1, 28, 28), np.dtype(np.float32), 0.0, 1.0),
    )


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (("pixels",), r"inputs\[0\].name: should name the graph's inputs image, got 'pixels'"),
        (("image", "mask"), "got 'mask'"),
    ],
)
def test_other_names_in_the_spec_are_refused(inputs: tuple[str, ...], message: str) -> None:
    """The message names the wrong or missing input."""
    with pytest.raises(ModelError, match=message):
        example_fields(bound(4), spec(*inputs), 4)


@pytest.mark.parametrize(
    ("body", "declared", "demand"),
    [
        ("y = Gather (table, k)", {"vocabulary": 9}, None),
        ("y = Gather (table, k)", {"vocabulary": 10}, "from 0 to below 9 .* Gather .* to below 10"),
        ("y = Gather (table, k)", {"low": -1, "high": 9}, "got -1 to below 9"),
        ("i = Cast <to = 6> (k) y = Gather <axis = 1> (table, i)", {"vocabulary": 5}, "below 4"),
        # Shape inference knows neither the number of nonzero elements nor a reshape to any rank.
        ("n = NonZero (z) y = Gather <axis = 1> (n, k)", {"vocabulary": 10}, None),
        ("s = Size (z) t = Unique (s) r = Reshape (z, t) y = Gather (r, k)", {"low": 0}, None),
        ("y = SoftmaxCrossEntropyLoss (z, k)", {"vocabulary": 4}, None),
        ("y = SoftmaxCrossEntropyLoss (z, k)", {"value": -1}, "below 4 .* reads 'z', got -1"),
        ("y = SoftmaxCrossEntropyLoss <ignore_index = -1> (z, k)", {"value": -1}, None),
        ("y = NegativeLogLikelihoodLoss (z, k)", {"vocabulary": 5}, "got 0 to below 5"),
    ],
)
def test_declared_indices_stay_within_what_they_index(
    body: str, declared: dict[str, int], demand: str | None
) -> None:
    """A spec may not declare indices outside an operator's range, nor -1 for the last one."""
    text = f"g (float[2, 4] z, int64[2] k) => (float y) <float[9, 4] table> {{ {body} }}"
    plain = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> {text}')
    model = onnx.shape_inference.infer_shapes(plain)
    declaration = spec(inputs=[Input(name="z"), Input.model_validate({"name": "k", **declared})])
    if demand is None:
        assert [field.name for field in example_fields(model, declaration, 2)] == ["z", "k"]
    else:
        with pytest.raises(ModelError, match=demand):
            example_fields(model, declaration, 2)


@given(st.integers(0, 2**40))
def test_the_pool_is_bounded(batch_bytes: int) -> None:
    """A pool has at least two batches, and at most the allowed number and bytes."""
    count = pool_size(batch_bytes)
    assert 2 <= count <= POOL_BATCHES
    assert count == 2 or count * batch_bytes <= POOL_BYTES


def test_held_out_batches_are_not_trained_on() -> None:
    """No held-out example is in the training pool."""
    field = InputField("x", (64, 64), np.dtype(np.float32), 0.0, 1.0)
    teacher = Teacher([field], [TargetField("target", (), np.dtype(np.int64), classes=10)], 3)
    trained, held_out = (
        {row.tobytes() for batch in pool["x"] for row in batch}
        for pool in (training_pool(teacher, 512), held_out_pool(teacher, 512))
    )
    assert len(held_out) == 1024
    assert not trained & held_out


def test_what_is_held_out_is_bounded_by_its_arithmetic() -> None:
    """A model with more FLOPs is evaluated on fewer batches, but at least one."""
    field = InputField("x", (4,), np.dtype(np.float32), 0.0, 1.0)
    counts = [
        len(held_out_pool(Teacher([field], (), 3), 64, batch_flops)["x"])
        for batch_flops in (0, HELD_OUT_FLOPS // 5, HELD_OUT_FLOPS * 5)
    ]
    assert counts == [HELD_OUT_EXAMPLES // 64, 5, 1]


def test_carried_inputs_are_not_data() -> None:
    """A carried input may not have an entry in ``[[inputs]]``."""
    carried = spec(carried=[{"input": "image", "output": "logits"}], inputs=[Input(name="other")])
    with pytest.raises(ModelError, match="got 'other'"):
        example_fields(bound(4), carried, 4)
    with_carried = spec("image", carried=[{"input": "image", "output": "logits"}])
    with pytest.raises(ModelError, match=r"got 'image', which \[\[carried\]\] starts at zero"):
        example_fields(bound(4), with_carried, 4)
