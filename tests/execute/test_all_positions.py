"""A decoder with logits at all positions learns the next token, in every weight format."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from built_decoders import built_decoder
from epochcost.execute.requests import with_all_positions
from onnxstep import (
    ADAPTERS,
    SoftmaxCrossEntropy,
    StepOptions,
    first_values,
    training_step,
    with_adapters,
)
from onnxstep.errors import ModelError
from tiny_decoders import VOCABULARY, tiny_decoder

LENGTH = 6
SIZES = {"batch_size": 2, "sequence_length": LENGTH, "total_sequence_length": LENGTH}


def _losses(graph: onnx.ModelProto, steps: int = 12, **options: object) -> list[float]:
    """Loss at each step of Adam; the last position has no next token to predict."""
    names = {dim.dim_param for v in graph.graph.input for dim in v.type.tensor_type.shape.dim}
    sizes = {**SIZES, "past_sequence_length": 0, "kv_cache_dim": 16}
    dimensions = {name: size for name, size in sizes.items() if name in names}
    loss = SoftmaxCrossEntropy(ignore_index=-100)
    settings = {"output": "logits", "optimizer": "adam", "dimensions": dimensions, **options}
    step = training_step(graph, StepOptions(loss=loss, **settings))
    assert set(step.inputs) <= {"input_ids", "attention_mask", "position_ids"}
    tokens = np.random.default_rng(0).integers(0, VOCABULARY, (2, LENGTH))
    after = np.roll(tokens, -1, axis=1)
    after[:, -1] = -100
    fed = {
        "input_ids": tokens,
        "attention_mask": np.ones((2, LENGTH), np.int64),
        "target": after,
        step.learning_rate: np.array(0.01, np.float32),
        **first_values(step, graph),
    }
    session = ort.InferenceSession(
        step.model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    outputs = [step.loss, *(carried.output for carried in step.carried)]
    losses = []
    for _ in range(steps):
        value, *new = session.run(outputs, fed)
        losses.append(float(value))
        fed |= {carried.input: array for carried, array in zip(step.carried, new, strict=True)}
    return losses


@pytest.mark.parametrize("rotary", [True, False])
def test_all_weights_learn(rotary: bool) -> None:
    """Decoders with rotary and with learnt positions, from files without weights."""
    whole = with_all_positions(tiny_decoder(rotary=rotary))
    losses = _losses(whole)
    assert losses[-1] < losses[0] / 2


@pytest.mark.parametrize("four_bits", [False, True])
def test_adapters_learn_beside_stored_weights(four_bits: bool) -> None:
    """Adapters learn on files of onnxruntime-genai's builder, in fp32 and in 4 bits."""
    adapted = with_adapters(built_decoder(four_bits=four_bits), 4, 16, ["layers.*"])
    losses = _losses(adapted, wrt=ADAPTERS)
    assert losses[-1] < losses[0] - 0.5


def test_a_cache_with_a_past_is_refused() -> None:
    """The message says that the length of the past must be bound to 0."""
    whole = with_all_positions(tiny_decoder())
    sizes = {**SIZES, "past_sequence_length": 4, "total_sequence_length": LENGTH + 4}
    with pytest.raises(ModelError, match=r"past keys and values .* bind their length to 0"):
        training_step(whole, StepOptions(output="logits", dimensions=sizes))
