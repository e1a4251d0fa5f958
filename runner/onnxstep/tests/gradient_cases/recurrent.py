"""Test cases of recurrent layers that cover all branches of the gradient rules."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradient_check import Case

STEPS, BATCH, WIDTH, HIDDEN = 4, 3, 2, 3
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
PLACES = ("x", "w", "r", "b", "lengths", "h0", "c0")


def _shapes(op_type: str, directions: int) -> dict[str, tuple[int, ...]]:
    gates = GATES[op_type] * HIDDEN
    shapes: dict[str, tuple[int, ...]] = {
        "x": (STEPS, BATCH, WIDTH),
        "w": (directions, gates, WIDTH),
        "r": (directions, gates, HIDDEN),
        "b": (directions, 2 * gates),
        "h0": (directions, BATCH, HIDDEN),
    }
    if op_type == "LSTM":
        shapes["c0"] = (directions, BATCH, HIDDEN)
    return shapes


def _recurrent_case(
    op_type: str, name: str, more_inputs: str, lengths: tuple[int, ...] = (), **options: Any
) -> Case:
    """A gradient case of a recurrent operator.

    The inputs are x, w, r and the names in ``more_inputs``, separated by spaces. ``lengths`` has
    the length of each sequence of the batch.
    """
    fields = {key: options.pop(key) for key in ("outputs", "opset") if key in options}
    directions = 2 if options.get("direction") == "bidirectional" else 1
    chosen = ["x", "w", "r", *more_inputs.split()]
    places = [place if place in chosen else "" for place in PLACES]
    while not places[-1]:
        places.pop()
    shapes = _shapes(op_type, directions)
    return Case(
        op_type,
        {key: shape for key, shape in shapes.items() if key in chosen},
        {"hidden_size": HIDDEN, **options},
        fixed={"lengths": np.array(lengths, np.int32)} if lengths else {},
        inputs=places,
        name=name,
        **{"outputs": 3 if op_type == "LSTM" else 2, **fields},
    )


def _forms(op_type: str, states: str, **options: Any) -> list[Case]:
    return [
        _recurrent_case(op_type, "weights_only", "", outputs=1, **options),
        _recurrent_case(
            op_type, "one_output_opset13", f"b {states}", outputs=1, opset=13, **options
        ),
        _recurrent_case(op_type, "all_inputs", f"b {states}", **options),
        _recurrent_case(op_type, "reverse", f"b {states}", direction="reverse", **options),
        _recurrent_case(
            op_type, "bidirectional", f"b {states}", direction="bidirectional", opset=17, **options
        ),
        _recurrent_case(op_type, "lengths", f"b lengths {states}", lengths=(2, 4, 1), **options),
        _recurrent_case(op_type, "full_lengths", "b lengths", lengths=(4, 4, 4), **options),
        _recurrent_case(
            op_type,
            "bidirectional_lengths",
            f"b lengths {states}",
            lengths=(3, 1, 4),
            direction="bidirectional",
            **options,
        ),
    ]


CASES = [
    *_forms("RNN", "h0"),
    *_forms("GRU", "h0", linear_before_reset=1),
    *_forms("LSTM", "h0 c0"),
    _recurrent_case("RNN", "relu", "b h0", activations=["Relu"]),
    _recurrent_case(
        "RNN", "two_functions", "b", direction="bidirectional", activations=["Relu", "Sigmoid"]
    ),
    _recurrent_case("LSTM", "functions", "b", activations=["Sigmoid", "Relu", "Sigmoid"]),
]
