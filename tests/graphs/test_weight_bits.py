"""Weights of few bits: their codes, and that the kernel computes with the coded weights."""

from __future__ import annotations

import numpy as np
import onnx
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from epochcost.graphs.weight_bits import (
    BLOCK,
    BYTES_PER_WEIGHT,
    draw_codes,
    in_few_bits,
    quantise,
)
from onnxstep.graphs.parameters import materialise, parameters
from tiny_decoders import VOCABULARY, Runner, tiny_decoder

PROMPT = np.random.default_rng(3).integers(0, VOCABULARY, (1, 12))


def dequantise(codes: NDArray[np.uint8], scales: NDArray[np.float32]) -> NDArray[np.float32]:
    """The weights [features, inner] that codes and scales represent."""
    codes = np.stack([codes & 15, codes >> 4], axis=3).reshape(*codes.shape[:2], BLOCK)
    steps = codes.astype(np.float32) - 8
    return np.asarray((steps * scales[:, :, None]).reshape(len(codes), -1), np.float32)


@given(st.integers(1, 5), st.integers(1, 4), st.integers(0, 2**31))
def test_a_number_moves_by_half_a_level_at_most(features: int, blocks: int, seed: int) -> None:
    """A weight moves by half a step at most. Zero and the largest of a block do not move."""
    weights = np.random.default_rng(seed).normal(size=(features, blocks * BLOCK))
    weights = weights.astype(np.float32)
    weights[0, 0] = 0
    codes, scales = quantise(weights)
    assert codes.nbytes + scales.nbytes == weights.size * BYTES_PER_WEIGHT
    found = dequantise(codes, scales)
    steps = np.repeat(scales, BLOCK, axis=1)
    assert np.all(np.abs(found - weights) <= steps * 0.5001)
    assert found[0, 0] == 0
    largest = np.abs(weights).reshape(features, blocks, BLOCK).max(axis=2)
    kept = np.abs(found).reshape(features, blocks, BLOCK).max(axis=2)
    np.testing.assert_allclose(kept, largest, rtol=1e-6)


def test_scores_are_those_of_the_dequantised_weights() -> None:
    """Scores equal those of the dequantised weights in fp32 but for rounding.

    The scores of the drawn weights differ.
    """
    model = tiny_decoder()
    quantised = Runner(model, few_bits=True)
    found = quantised.logits(PROMPT, quantised.empty_cache(1, 12), 12)
    exact = _with_dequantised(model)
    expected = exact.logits(PROMPT, exact.empty_cache(1, 12), 12)
    assert np.linalg.norm(found - expected) < 1e-4 * np.linalg.norm(expected)
    plain = Runner(model)
    drawn = plain.logits(PROMPT, plain.empty_cache(1, 12), 12)
    assert np.linalg.norm(found - drawn) > 0.01 * np.linalg.norm(drawn)


def _with_dequantised(model: onnx.ModelProto) -> Runner:
    """The decoder whose products read the dequantised weights as constants."""
    bound = in_few_bits(model, integer_activations=False)
    codes = draw_codes(bound)
    replaced = onnx.ModelProto()
    replaced.CopyFrom(model)
    values = materialise(model)
    graph = replaced.graph
    for name in {one.rpartition(".")[0] for one in codes}:
        weight = dequantise(codes[f"{name}.codes"], codes[f"{name}.scales"])
        turned = name == "embed.weight"
        stored = f"{name}.stored"
        graph.initializer.append(
            onnx.numpy_helper.from_array(
                weight if turned else np.ascontiguousarray(weight.T), stored
            )
        )
        for node in graph.node:
            if node.op_type in {"MatMul", "Transpose"}:
                node.input[:] = [stored if one == name else one for one in node.input]
    assert values
    return Runner(replaced)


def test_a_tied_table_is_looked_up_as_it_was() -> None:
    """A tied embedding stays a parameter in fp32 beside the codes of the head."""
    quantised = in_few_bits(tiny_decoder(), integer_activations=True)
    assert "embed.weight" in {one.name for one in parameters(quantised)}
    fed = {one.name for one in quantised.graph.input}
    assert {"embed.weight.codes", "embed.weight.scales"} <= fed
    assert "layers.0.out.weight" not in fed
    assert not [node for node in quantised.graph.node if node.op_type == "Transpose"]
