"""Decoders in half precision: the cache, the angles of positions and codes of few bits."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

from epochcost.graphs.weight_bits import draw_codes
from onnxstep.graphs.tensors import declared_values
from tiny_decoders import VOCABULARY, Runner, tiny_decoder

FP16, FP32 = TensorProto.FLOAT16, TensorProto.FLOAT


@pytest.mark.parametrize("rotary", [True, False], ids=["smollm2", "gpt2"])
def test_a_decoder_is_half_with_its_cache(rotary: bool) -> None:
    """Cache and attention have no cast between them, and greedy scores stay within 1 %."""
    decoder = tiny_decoder(rotary=rotary)
    plain, half = Runner(decoder), Runner(decoder, half=True)
    prompt = np.random.default_rng(3).integers(0, VOCABULARY, (2, 12))
    caches = [one.empty_cache(2, 16) for one in (plain, half)]
    assert {values.dtype for values in caches[1].values()} == {np.dtype(np.float16)}
    for tokens, length in ((prompt, 12), (prompt[:, :1], 13)):
        exact = plain.logits(tokens, caches[0], length)
        found = half.logits(tokens, caches[1], length)
        assert np.linalg.norm(found - exact) < 0.01 * np.linalg.norm(exact)
        assert found.dtype == np.float32
    graph = half.bound(2, 12, 12, 16).graph
    fed = {name for node in graph.node if node.op_type == "Cast" for name in node.input}
    assert not any(name.startswith("past") for name in fed)


def test_positions_of_a_long_context_keep_their_angles() -> None:
    """Sines and cosines are computed in fp32, since half cannot hold a position of 10,000."""
    graph = Runner(tiny_decoder(), half=True).bound(1, 4, 4, 4).graph
    kinds = {one.name: one.type.tensor_type.elem_type for one in declared_values(graph)}
    angular = [node for node in graph.node if node.op_type in {"Cos", "Sin"}]
    assert len(angular) == 2
    for node in angular:
        assert {kinds[node.input[0]], kinds[node.output[0]]} == {FP32}


def test_codes_of_four_bits_have_half_scales() -> None:
    """Scales of codes are in half precision, as a GPU's kernel reads them."""
    half = Runner(tiny_decoder(), half=True, few_bits=True)
    graph = half.bound(1, 4, 4, 4)
    scales = [one for one in graph.graph.input if one.name.endswith(".scales")]
    assert {one.type.tensor_type.elem_type for one in scales} == {FP16}
    drawn = draw_codes(graph)
    assert {drawn[one.name].dtype for one in scales} == {np.dtype(np.float16)}
