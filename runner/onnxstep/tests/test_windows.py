"""Windows that do not fit their input are refused, although shape inference accepts them."""

from __future__ import annotations

import pytest

from graph_text import model_of_text
from onnxstep import vjp_graph
from onnxstep.errors import ModelError


@pytest.mark.parametrize(
    ("attributes", "demand"),
    [
        ('auto_pad = "SAME_UPPER", kernel_shape = [2, 2], strides = [1]', "strides"),
        ('auto_pad = "SAME_UPPER", kernel_shape = [2, 2], dilations = [1, 1, 1]', "dilations"),
        ("kernel_shape = [2, 2], pads = [0, 0]", "pads"),
        ("kernel_shape = [2]", "window|kernel"),
    ],
)
def test_a_window_has_a_number_for_each_axis(attributes: str, demand: str) -> None:
    """A window attribute with too few or too many numbers gives a one-line error."""
    model = model_of_text(
        f"g (float[1,2,4,4] x) => (float[a,b,c,d] y) {{ y = MaxPool <{attributes}> (x) }}"
    )
    with pytest.raises(ModelError, match=demand):
        vjp_graph(model, ["x"], {})
