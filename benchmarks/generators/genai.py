"""onnxruntime-genai's Generator over our graph, written to a folder as its model builder does.

The graph is the one that we time, with dimensions left open and weights as external data. Generator
sees that the head has one position and takes its logits from there, so that it needs no other.
Prompts and answers share a cache that is just as long as both; what sets it up is not timed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from epochcost.specs.decoder import Decoder
from generators.case import Array, Case, form, weights

FOLDER = "genai"
_TOKENS = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}
_INPUTS = {
    "input_ids": "input_ids",
    "attention_mask": "attention_mask",
    "past_key_names": "past_key_values.%d.key",
    "past_value_names": "past_key_values.%d.value",
}
_OUTPUTS = {
    "logits": "logits",
    "present_key_names": "present.%d.key",
    "present_value_names": "present.%d.value",
}


def write(case: Case, decoder: Decoder, folder: Path) -> None:
    """Write what ``Genai`` opens: weights, graph and configuration, for any batch."""
    target = folder / FOLDER
    target.mkdir()
    graph = case.decoder()
    _store(graph, weights(graph))
    onnx.save(graph, target / "model.onnx", save_as_external_data=True, location="model.data")
    inner = {
        "filename": "model.onnx",
        "session_options": {"intra_op_num_threads": case.threads, "provider_options": []},
        "inputs": _INPUTS,
        "outputs": _OUTPUTS,
        **form(decoder),
    }
    sizes = {"vocab_size": case.vocabulary, "context_length": decoder.context}
    search = {"max_length": decoder.context, "past_present_share_buffer": True}
    told = {"model": {"type": "llama", **_TOKENS, **sizes, "decoder": inner}, "search": search}
    (target / "genai_config.json").write_text(json.dumps(told), "utf-8")


def _store(model: onnx.ModelProto, values: dict[str, Array]) -> None:
    graph = model.graph
    for value in [value for value in graph.input if value.name in values]:
        graph.input.remove(value)
    graph.initializer.extend(
        onnx.numpy_helper.from_array(values.pop(name), name) for name in [*values]
    )


class Genai:
    """A Generator for each answer, for that of several sequences cannot be rewound."""

    def __init__(self, case: Case, folder: Path) -> None:
        import onnxruntime_genai

        self._genai, self._case = onnxruntime_genai, case
        self._model = onnxruntime_genai.Model(str(folder.parent / FOLDER))
        self._prompts = case.prompts().astype(np.int32)
        self._generator: Any = None

    def scores(self) -> Array:
        """See ``Engine``."""
        self.fresh()
        self._generator.append_tokens(self._prompts)
        first = self._generator.get_logits()[:, -1].copy()
        self._generator.generate_next_token()
        return np.stack([first, self._generator.get_logits()[:, -1]])

    def fresh(self) -> None:
        """See ``Engine``; the end of a sequence is barred by its least length."""
        length = self._case.longest + 1
        options = self._genai.GeneratorParams(self._model)
        options.set_search_options(
            max_length=length, min_length=length, batch_size=self._case.batch, do_sample=False
        )
        self._generator = None
        self._generator = self._genai.Generator(self._model, options)

    def prefill(self) -> None:
        """See ``Engine``."""
        self._generator.append_tokens(self._prompts)
        self._generator.generate_next_token()

    def decode(self) -> None:
        """See ``Engine``."""
        self._generator.generate_next_token()
