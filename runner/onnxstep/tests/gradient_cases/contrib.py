"""Operators that ONNX Runtime contributes: one row for each form that a rule has to get right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gradient_check import Case

DOMAIN = "com.microsoft"
X, ROW = (2, 3, 5), (5,)
SUM_TOO = ("y", "", "", "sum")
HEADS = {"q": (2, 3, 4), "k": (2, 5, 4), "v": (2, 5, 6)}
PACKED = {"x": (2, 3, 5), "w": (5, 12)}
KEEP = np.array([[1, 1, 1, 0, 0], [1, 0, 1, 1, 1]], np.int32)


def _case(
    op_type: str,
    name: str,
    shapes: Mapping[str, tuple[int, ...]],
    attributes: Mapping[str, Any] | None = None,
    places: Sequence[str] = (),
    **fields: Any,
) -> Case:
    """Inputs stand in the given order, or at those of ``places`` that are given."""
    given = {*shapes, *fields.get("held", {})}
    inputs = [place if place in given else "" for place in places]
    while inputs and not inputs[-1]:
        inputs.pop()
    form = {"domain": DOMAIN, "opset": 18, "inputs": inputs, **fields}
    return Case(op_type, shapes, attributes or {}, name=name, **form)


def _heads(name: str, shapes: Mapping[str, tuple[int, ...]], **options: Any) -> Case:
    fields = {key: options.pop(key) for key in ("held", "outputs") if key in options}
    places = ("q", "k", "v", "b", "mask", "added")
    return _case("MultiHeadAttention", name, shapes, {"num_heads": 2, **options}, places, **fields)


def _packed(name: str, shapes: Mapping[str, tuple[int, ...]], **options: Any) -> Case:
    fields = {key: options.pop(key) for key in ("held", "runtime_flaw") if key in options}
    places = ("x", "w", "b", "mask", "past", "added")
    return _case("Attention", name, shapes, {"num_heads": 2, **options}, places, **fields)


def _rotary(name: str, x: tuple[int, ...], positions: Any, opset: int = 18, **options: Any) -> Case:
    shapes = {"x": x, "cos": (6, 2), "sin": (6, 2)}
    held = {"positions": np.asarray(positions, np.int64)}
    places = ("x", "positions", "cos", "sin")
    return _case("RotaryEmbedding", name, shapes, options, places, held=held, opset=opset)


CASES = [
    *(
        _case(op_type, "plain", {"x": (4, 5)}, low=-3.0, high=3.0)
        for op_type in ("Gelu", "FastGelu", "QuickGelu")
    ),
    *(
        _case(op_type, "bias", {"x": X, "b": ROW}, low=-2.0, high=2.0)
        for op_type in ("BiasGelu", "FastGelu")
    ),
    _case("QuickGelu", "silu", {"x": (4, 5)}, {"alpha": 1.0}, opset=13),
    *(
        _case(
            "SkipLayerNormalization",
            name,
            {key: ROW if key in ("gamma", "beta", "bias") else X for key in keys.split()},
            {"epsilon": 1e-3},
            ("x", "skip", "gamma", "beta", "bias"),
            outputs=outputs,
        )
        for name, keys, outputs in (
            ("plain", "x skip gamma beta", 1),
            ("bias", "x skip gamma beta bias", 1),
            ("sum_too", "x skip gamma beta bias", SUM_TOO),
            ("without_beta", "x skip gamma", SUM_TOO),
            ("statistics", "x skip gamma beta bias", 4),
        )
    ),
    _case(
        "SkipLayerNormalization",
        "opset13",
        {"x": X, "skip": X, "gamma": ROW},
        {"epsilon": 1e-3},
        opset=13,
    ),
    *(
        _case(
            "SkipSimplifiedLayerNormalization",
            name,
            {key: ROW if key in ("gamma", "bias") else X for key in keys.split()},
            {"epsilon": 1e-3},
            outputs=outputs,
        )
        for name, keys, outputs in (
            ("plain", "x skip gamma", 1),
            ("bias_and_sum", "x skip gamma bias", SUM_TOO),
            ("statistics", "x skip gamma", 4),
        )
    ),
    *(
        _case("FusedMatMul", name, {"a": a, "b": b}, attributes)
        for name, a, b, attributes in (
            ("scaled", (2, 3), (3, 4), {"alpha": 0.5}),
            ("transposed", (3, 2), (4, 3), {"transA": 1, "transB": 1}),
            ("batch", (2, 1, 3, 2), (5, 3, 4), {"transA": 1}),
            ("turned_batch", (3, 2, 4), (2, 4, 5), {"transBatchA": 1}),
            (
                "both_turned",
                (4, 2, 5, 3),
                (6, 2, 5, 4),
                {
                    "transBatchA": 1,
                    "transA": 1,
                    "transBatchB": 1,
                    "transB": 1,
                    "alpha": 2.0,
                },
            ),
        )
    ),
    _case("TransposeMatMul", "old_name", {"a": (3, 2), "b": (3, 4)}, {"transA": 1}),
    _heads("plain", HEADS),
    _heads("bias_and_scale", {**HEADS, "b": (14,)}, scale=0.6),
    _heads("causal", {**HEADS, "k": (2, 3, 4), "v": (2, 3, 6)}, unidirectional=1),
    _heads("mask", {**HEADS, "b": (14,)}, held={"mask": KEEP}),
    _heads("lengths", HEADS, held={"mask": np.array([3, 5], np.int32)}),
    _heads("added", {**HEADS, "added": (1, 2, 3, 5)}, held={"mask": KEEP}),
    _heads("present", {**HEADS, "b": (14,)}, outputs=3),
    _packed("plain", PACKED, runtime_flaw="ONNX Runtime 1.31: crashes where the bias is left out"),
    _packed("bias", {**PACKED, "b": (12,)}, scale=0.6),
    _packed("causal", {**PACKED, "b": (12,)}, unidirectional=1),
    _packed("mask", {**PACKED, "b": (12,)}, held={"mask": KEEP[:, :3]}),
    _packed("lengths", {**PACKED, "b": (12,)}, held={"mask": np.array([3, 1], np.int32)}),
    _packed("added", {**PACKED, "b": (12,), "added": (2, 2, 3, 3)}),
    _packed("widths", {"x": (2, 3, 5), "w": (5, 14), "b": (14,)}, qkv_hidden_sizes=[4, 4, 6]),
    _rotary("flat", (2, 3, 8), [[0, 1, 4], [3, 1, 1]]),
    _rotary("first_position", (2, 3, 8), [2], interleaved=1),
    _rotary("heads", (2, 2, 3, 4), [[0, 1, 4], [3, 1, 1]]),
    _rotary("partial", (2, 3, 12), [1], num_heads=2, rotary_embedding_dim=4),
]
