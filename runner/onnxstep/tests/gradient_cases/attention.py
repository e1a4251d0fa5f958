"""Gradient cases of attention, at least one for each form of a rule."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradient_check import Case, ints

FIELDS = ("outputs", "opset", "fixed", "runtime_flaw", "reference_flaw")
NO_SHORT_MASK = "ONNX Runtime 1.31: demands a mask over all keys"
NO_WINDOW = "ONNX Runtime 1.31: knows no windows"
PLACES = ("q", "k", "v", "mask", "past_key", "past_value", "lengths")
Q, K, V = (2, 4, 3, 2), (2, 4, 5, 2), (2, 4, 5, 3)
SHARED = {"q": Q, "k": (2, 2, 5, 2), "v": (2, 2, 5, 3)}
FLAT = {"q": (2, 3, 8), "k": (2, 5, 4), "v": (2, 5, 6)}
FLAT_HEADS = {"q_num_heads": 4, "kv_num_heads": 2}
PAST = {"past_key": (2, 2, 2, 2), "past_value": (2, 2, 2, 3)}
# The third query of the first example has no allowed key.
KEEP = np.array([[[1, 0, 1, 1, 0], [1, 1, 0, 0, 1], [0] * 5], [[1] * 5, [0, 1, 0, 1, 0], [1] * 5]])
HOLES = np.where(KEEP, 0.5, -np.inf)[:, None]


def _case(name: str, shapes: dict[str, tuple[int, ...]], **options: Any) -> Case:
    """A case of Attention with the inputs in ``shapes``; further ``options`` are attributes."""
    fields = {key: options.pop(key) for key in FIELDS if key in options}
    tensors = {*shapes, *fields.get("fixed", {})}
    places = [place if place in tensors else "" for place in PLACES]
    while not places[-1]:
        places.pop()
    return Case("Attention", shapes, options, inputs=places, name=name, **{"opset": 23, **fields})


CASES = [
    _case("heads", {"q": Q, "k": K, "v": V}),
    _case("shared_heads", SHARED, is_causal=1),
    _case("flat", FLAT, **FLAT_HEADS, scale=0.7),
    _case("softcap", SHARED, softcap=0.8, scale=0.7),
    _case("bool_mask", SHARED, fixed={"mask": KEEP[:, None].astype(bool)}, is_causal=1),
    # Integers are added to the scores, like floats.
    _case("whole_mask", SHARED, fixed={"mask": 2 * KEEP[:, None]}),
    _case("float_mask", {**SHARED, "mask": (2, 1, 3, 5)}, softcap=0.8),
    _case("mask_for_all", {**SHARED, "mask": (3, 5)}, is_causal=1),
    _case("mask_with_holes", SHARED, fixed={"mask": HOLES}),
    _case("past", {**FLAT, **PAST}, **FLAT_HEADS, is_causal=1, outputs=3),
    _case("past_and_mask", {**SHARED, **PAST, "mask": (3, 7)}, outputs=3),
    _case("softmax_in_double", SHARED, softmax_precision=11),
    _case("short_mask", {**SHARED, "mask": (3, 4)}, opset=24, runtime_flaw=NO_SHORT_MASK),
    _case("lengths", SHARED, fixed={"lengths": ints(3, 5)}, opset=24),
    _case("causal_lengths", SHARED, fixed={"lengths": ints(3, 5)}, opset=24, is_causal=1),
    _case(
        "window", SHARED, opset=25, runtime_flaw=NO_WINDOW, left_window_size=1, right_window_size=1
    ),
    _case(
        "causal_window",
        {**SHARED, **PAST},
        opset=25,
        runtime_flaw=NO_WINDOW,
        left_window_size=2,
        is_causal=1,
    ),
]
