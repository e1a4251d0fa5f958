"""Test cases of ONNX Runtime's own operators that cover all branches of the gradient rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gradient_check import Case

DOMAIN = "com.microsoft"
X, ROW = (2, 3, 5), (5,)
SUM_TOO = ("y", "", "", "sum")


def _contrib_case(
    op_type: str,
    name: str,
    shapes: Mapping[str, tuple[int, ...]],
    attributes: Mapping[str, Any] | None = None,
    input_names: Sequence[str] = (),
    **fields: Any,
) -> Case:
    """A gradient case of an operator of the domain com.microsoft.

    ``input_names`` lists the operator's inputs in order. A name that has no shape and no value in
    ``fixed`` is an omitted input.
    """
    tensors = {*shapes, *fields.get("fixed", {})}
    inputs = [place if place in tensors else "" for place in input_names]
    while inputs and not inputs[-1]:
        inputs.pop()
    form = {"domain": DOMAIN, "opset": 18, "inputs": inputs, **fields}
    return Case(op_type, shapes, attributes or {}, name=name, **form)


def _rotary(name: str, x: tuple[int, ...], positions: Any, **options: Any) -> Case:
    angles = np.outer(np.arange(6), 0.5 ** np.arange(2))
    fixed = {"positions": np.asarray(positions, np.int64), "cos": np.cos(angles)}
    fixed["sin"] = np.sin(angles)
    places = ("x", "positions", "cos", "sin")
    return _contrib_case("RotaryEmbedding", name, {"x": x}, options, places, fixed=fixed)


def _grouped_query_attention_case(
    name: str, shapes: Mapping[str, tuple[int, ...]], past_length: int | None = None, **options: Any
) -> Case:
    fields = {key: options.pop(key) for key in ("outputs",) if key in options}
    angles = np.outer(np.arange(5), 0.5 ** np.arange(8))
    fixed: dict[str, Any] = {"lengths": np.full(2, 2, np.int32), "total": np.array(3, np.int32)}
    if past_length is not None:
        fixed |= {name: np.zeros((2, 2, past_length, 16)) for name in ("past_k", "past_v")}
    if options.get("do_rotary"):
        fixed |= {"cos": np.cos(angles), "sin": np.sin(angles)}
    places = ["q", "k", "v", "past_k", "past_v", "lengths", "total", "cos", "sin"]
    places += ["positions", "added"]
    heads = {"num_heads": 4, "kv_num_heads": 2, **options}
    return _contrib_case("GroupQueryAttention", name, shapes, heads, places, fixed=fixed, **fields)


def _matmul_nbits_case(name: str, bits: int = 4, zeros: Any = None, bias: bool = False) -> Case:
    """A gradient case of MatMulNBits with weights [5, 20].

    Each row of 20 weights is stored in two blocks of 16; padding fills the second block.
    """
    numbers = np.random.default_rng(bits)
    fixed = {
        "codes": numbers.integers(0, 256, (5, 2, 16 * bits // 8)).astype(np.uint8),
        "scales": numbers.uniform(0.5, 1.5, (5, 2)) / 2**bits,
    }
    shapes = {"x": (2, 3, 20)} | ({"b": (5,)} if bias else {})
    places = ("x", "codes", "scales", "zeros", "groups", "b")
    attributes = {"K": 20, "N": 5, "bits": bits, "block_size": 16}
    fixed |= {} if zeros is None else {"zeros": zeros}
    return _contrib_case("MatMulNBits", name, shapes, attributes, places, fixed=fixed)


GROUPED = {"q": (2, 3, 64), "k": (2, 3, 32), "v": (2, 3, 32)}
SIDE_BY_SIDE = {"q": (2, 3, 128)}
CASES = [
    _contrib_case("Gelu", "plain", {"x": (4, 5)}, low=-3.0, high=3.0),
    _contrib_case("FastGelu", "plain", {"x": (4, 5)}, low=-3.0, high=3.0),
    _contrib_case("FastGelu", "bias", {"x": X, "b": ROW}, low=-2.0, high=2.0),
    *(
        _contrib_case(
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
    _contrib_case(
        "SkipLayerNormalization",
        "opset13",
        {"x": X, "skip": X, "gamma": ROW},
        {"epsilon": 1e-3},
        opset=13,
    ),
    *(
        _contrib_case(
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
    _rotary("flat", (2, 3, 8), [[0, 1, 4], [3, 1, 1]]),
    _rotary("first_position", (2, 3, 8), [2], interleaved=1),
    _rotary("heads", (2, 2, 3, 4), [[0, 1, 4], [3, 1, 1]]),
    _rotary("partial", (2, 3, 12), [1], num_heads=2, rotary_embedding_dim=4),
    _grouped_query_attention_case("plain", GROUPED),
    _grouped_query_attention_case("packed", SIDE_BY_SIDE, do_rotary=1, outputs=3),
    _grouped_query_attention_case("empty_past", SIDE_BY_SIDE, 0, do_rotary=1, scale=0.4),
    _grouped_query_attention_case(
        "interleaved", GROUPED, do_rotary=1, rotary_interleaved=1, softcap=0.7
    ),
    _grouped_query_attention_case(
        "partial_window", {"q": (2, 3, 256)}, do_rotary=1, local_window_size=2
    ),
    _grouped_query_attention_case("added", {**GROUPED, "added": (2, 4, 3, 3)}),
    _matmul_nbits_case("four"),
    _matmul_nbits_case("eight_with_bias", 8, bias=True),
    _matmul_nbits_case("two", 2),
    _matmul_nbits_case(
        "coded_zeros", zeros=np.array([[0x37], [0x98], [0x8A], [0x15], [0xC6]], np.uint8)
    ),
    _matmul_nbits_case("float_zeros", zeros=np.linspace(2.0, 11.0, 10).reshape(5, 2)),
]
