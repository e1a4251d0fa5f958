"""Small decoders by the committed exporter, which generate in milliseconds."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort

from epochcost.graphs.weight_bits import draw_codes, in_few_bits, scale_inputs
from onnxstep.graphs.binding import bind_dimensions
from onnxstep.graphs.parameters import materialise
from onnxstep.graphs.precision import in_half_precision

MODELS = Path(__file__).parents[1] / "models"
LAYERS, WIDTH, HEADS, SHARED, INNER, VOCABULARY, CONTEXT = 2, 64, 4, 2, 96, 97, 256
Array = np.ndarray[Any, np.dtype[Any]]


@cache
def exporter() -> ModuleType:
    """The exporter of decoders, with its neighbours imported from its folder."""
    sys.path.insert(0, str(MODELS))
    try:
        spec = importlib.util.spec_from_file_location("decoders", MODELS / "export_decoders.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["decoders"] = module
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(str(MODELS))


def tiny_decoder(*, rotary: bool = True, deviation: float = 0.3) -> onnx.ModelProto:
    """A decoder without weights, built like SmolLM2, or like GPT-2 if not ``rotary``.

    Large weights make the scores of tokens so different that rounding changes no greedy choice.
    """
    shape = exporter().Shape(
        layers=LAYERS,
        width=WIDTH,
        heads=HEADS,
        key_value_heads=SHARED if rotary else HEADS,
        inner=INNER,
        vocabulary=VOCABULARY,
        context=CONTEXT,
        theta=10_000 if rotary else None,
        epsilon=1e-5,
        deviation=deviation,
        projection_bias=not rotary,
    )
    model = exporter().Decoder(shape).build("tiny_decoder")
    assert isinstance(model, onnx.ModelProto)
    return model


DECODER_SPEC = f"""
id = "tiny"
name = "Tiny"
task = "tests"
example = "a token"
graph = "tiny.onnx"
source = "made up for a test"

[decoder]
layers = {LAYERS}
heads = {HEADS}
key_value_heads = {SHARED}
head_size = {WIDTH // HEADS}
vocabulary = {VOCABULARY}
context = {CONTEXT}
generation.batch_sizes = [1, 2]
generation.prompts = [8]
generation.contexts = [8, 24]
"""


class Runner:
    """Run phases of a decoder through ONNX Runtime, with a cache that is updated in place."""

    def __init__(
        self,
        model: onnx.ModelProto,
        *,
        few_bits: bool = False,
        half: bool = False,
        seed: int = 0,
    ) -> None:
        self.model, self._few_bits, self._half, self._seed = model, few_bits, half, seed

    def bound(self, batch: int, new: int, length: int, room: int) -> onnx.ModelProto:
        """The graph for these sizes and precision; the cache keeps its length in a run."""
        sizes = {"batch_size": batch, "sequence_length": new, "total_sequence_length": length}
        graph = bind_dimensions(self.model, sizes | {"past_sequence_length": room})
        if self._few_bits:
            graph = in_few_bits(graph, integer_activations=False)
        if self._half:
            past = [one.name for one in graph.graph.input if one.name.startswith("past")]
            cache = {name: name.replace("past_key_values", "present") for name in past}
            graph = in_half_precision(graph, onnx.TensorProto.FLOAT16, cache, scale_inputs(graph))
        for value in graph.graph.output:
            if value.name.startswith("present"):
                value.type.tensor_type.shape.dim[2].dim_value = room
        return graph

    def logits(self, tokens: Array, cache: dict[str, Array], length: int) -> Array:
        """Scores after tokens [batch, new], with which the cache has ``length`` tokens.

        The cache is updated in place.
        """
        batch, new = tokens.shape
        room = next(iter(cache.values())).shape[2]
        graph = self.bound(batch, new, length, room)
        weights = {**materialise(graph, self._seed), **draw_codes(graph, self._seed)}
        options = ort.SessionOptions()
        options.log_severity_level = 3
        session = ort.InferenceSession(graph.SerializeToString(), options)
        binding = session.io_binding()
        mask = np.ones((batch, length), np.int64)
        fed = {"input_ids": tokens, "attention_mask": mask, **weights}
        for info in session.get_inputs():
            if info.name in cache:
                kept = ort.OrtValue.ortvalue_from_numpy(cache[info.name])
                binding.bind_ortvalue_input(info.name, kept)
                after = info.name.replace("past_key_values", "present")
                binding.bind_ortvalue_output(after, kept)
            else:
                binding.bind_cpu_input(info.name, np.ascontiguousarray(fed[info.name]))
        binding.bind_output("logits", "cpu")
        session.run_with_iobinding(binding)
        names = [one.name for one in session.get_outputs()]
        return np.asarray(binding.get_outputs()[_bound_last(names)].numpy())[:, 0]

    def empty_cache(self, batch: int, room: int) -> dict[str, Array]:
        """A cache of zeros for this number of sequences and tokens."""
        kind = np.float16 if self._half else np.float32
        names = [v.name for v in self.model.graph.input if v.name.startswith("past_key_values")]
        shapes = {
            v.name: [d.dim_value for d in v.type.tensor_type.shape.dim]
            for v in self.model.graph.input
        }
        return {
            name: np.zeros((batch, shapes[name][1], room, shapes[name][3]), kind) for name in names
        }


def _bound_last(names: list[str]) -> int:
    """The place of the scores among the outputs, which have the order of binding: the last."""
    return len(names) - 1


def greedy_with_cache(runner: Runner, prompt: Array, count: int) -> list[int]:
    """Tokens by a prefill and then one decoding after another with one cache."""
    cache = runner.empty_cache(1, prompt.shape[1] + count)
    length = prompt.shape[1]
    token = int(np.argmax(runner.logits(prompt, cache, length)))
    found = [token]
    while len(found) < count:
        length += 1
        token = int(np.argmax(runner.logits(np.array([[token]]), cache, length)))
        found.append(token)
    return found


def greedy_anew(runner: Runner, prompt: Array, count: int) -> list[int]:
    """The same tokens without a cache: everything is read again for each token."""
    tokens = prompt
    found: list[int] = []
    while len(found) < count:
        length = tokens.shape[1]
        scores = runner.logits(tokens, runner.empty_cache(1, length), length)
        found.append(int(np.argmax(scores)))
        tokens = np.concatenate([tokens, [[found[-1]]]], axis=1)
    return found
