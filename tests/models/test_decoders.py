"""Exported decoders: the cache changes only the time, and sizes are the authors'."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import onnx
import pytest

from epochcost.graphs.counting import expert_weights
from epochcost.specs.loader import load_catalogue
from onnxstep.graphs.loading import load_model
from onnxstep.graphs.parameters import parameter_count, parameters
from tiny_decoders import (
    HEADS,
    LAYERS,
    SHARED,
    VOCABULARY,
    Runner,
    greedy_anew,
    greedy_with_cache,
    tiny_decoder,
)

MODELS = Path(__file__).parents[2] / "models"
PROMPT = np.random.default_rng(1).integers(0, VOCABULARY, (1, 12))
# As published: Radford et al. 2019 with its code, and the model cards of the others.
PUBLISHED = {
    "gpt2_decoder": 124_439_808,
    "smollm2_135m": 134_515_008,
    "qwen2_5_0_5b": 494_032_768,
    "llama3_2_1b": 1_235_814_400,
    "llama3_1_8b": 8_030_261_248,
    "llama3_1_70b": 70_553_706_496,
    "mixtral_8x7b": 46_702_792_704,
}


@pytest.mark.parametrize("rotary", [True, False], ids=["rotary", "learned-positions"])
def test_the_cache_changes_no_token(rotary: bool) -> None:
    """Forty greedy tokens with the cache equal those of reading everything again."""
    runner = Runner(tiny_decoder(rotary=rotary))
    tokens = greedy_with_cache(runner, PROMPT, 40)
    assert tokens == greedy_anew(runner, PROMPT, 40)
    assert len(set(tokens)) > 3


def test_several_sequences_are_those_of_each() -> None:
    """Scores of a batch of two equal those of each sequence."""
    runner = Runner(tiny_decoder())
    prompts = np.random.default_rng(2).integers(0, VOCABULARY, (2, 9))
    pair = runner.logits(prompts, runner.empty_cache(2, 9), 9)
    for row, prompt in zip(pair, prompts, strict=True):
        alone = runner.logits(prompt[None], runner.empty_cache(1, 9), 9)
        np.testing.assert_allclose(row, alone[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_parameters_are_as_many_as_published(name: str) -> None:
    """Counted in the committed files, tied embeddings once."""
    assert parameter_count(load_model(MODELS / f"{name}.onnx")) == PUBLISHED[name]


def test_the_graph_says_its_form() -> None:
    """The cache has the shared heads, and every layer reads and writes its part."""
    graph = tiny_decoder().graph
    caches = [cache for cache in graph.input if cache.name.startswith("past_key_values")]
    assert len(caches) == 2 * LAYERS
    assert {cache.type.tensor_type.shape.dim[1].dim_value for cache in caches} == {SHARED}
    attentions = [node for node in graph.node if node.op_type == "GroupQueryAttention"]
    assert len(attentions) == LAYERS
    heads = {a.i for node in attentions for a in node.attribute if a.name == "num_heads"}
    assert heads == {HEADS}


def idle_weights(graph: onnx.ModelProto) -> int:
    """The weights of the experts that a token does not choose."""
    shapes = {tensor.name: tensor.shape for tensor in parameters(graph)}
    idle = 0
    for node in (node for node in graph.graph.node if node.op_type == "MoE"):
        (chosen,) = (entry.i for entry in node.attribute if entry.name == "k")
        for experts, *sizes in (shapes[name] for name in expert_weights(node)):
            idle += (experts - chosen) * math.prod(sizes)
    return idle


def test_a_spec_has_the_parameters_of_its_graph() -> None:
    """All of them, and those that one token of a mixture of experts uses."""
    catalogue = load_catalogue(MODELS.parent)
    for model in catalogue.models.values():
        if model.decoder is not None and model.graph is not None:
            graph = load_model(catalogue.graph_path(model))
            assert model.decoder.parameters == parameter_count(graph), model.id
            active = parameter_count(graph) - idle_weights(graph)
            assert model.decoder.active_parameters == active, model.id
            assert model.decoder.hidden is not None
