"""The nine light models of the onnx package become training steps that run and learn."""

from __future__ import annotations

import math

import onnx
import pytest

from graph_text import session
from light_models import FOLDER, NAMES, losses
from onnxstep import vjp_graph

BATCH_SIZE, STEPS, RATE = 2, 12, 2e-5
pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", NAMES)
def test_the_file_as_it_stands_has_a_gradient(name: str) -> None:
    """ONNX Runtime loads the graph of the gradient with respect to the image.

    In the model's file, of IR version 3, all initializers are also inputs.
    """
    model = onnx.load(FOLDER / f"light_{name}.onnx")
    assert model.ir_version == 3
    stored = {tensor.name for tensor in model.graph.initializer}
    [image] = [value.name for value in model.graph.input if value.name not in stored]
    backward = vjp_graph(model, [image])
    assert session(backward).get_outputs()[-1].name == f"{image}_gradient"


@pytest.mark.parametrize("name", NAMES)
def test_the_loss_falls_on_random_batches(name: str) -> None:
    """Twelve steps of Adam on two alternating batches lower the loss."""
    values = losses(name, BATCH_SIZE, STEPS, RATE)
    assert all(map(math.isfinite, values))
    assert sum(values[-2:]) < sum(values[:2])
