"""A decoder's weights as a GGUF file, which llama.cpp reads."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from transformers_modules import renamed

from onnxstep.graphs.loading import load_model
from onnxstep.graphs.parameters import materialise


def write(graph: Path, seed: int, path: Path) -> None:
    """Write the weights that ``seed`` draws, in fp32, as a Qwen2 model without tokens' texts.

    A Qwen2 model computes as Llama does if its biases are zero.
    """
    import gguf
    import torch

    sys.path.insert(0, "models")
    shape = importlib.import_module("export_decoders").SHAPES[graph.stem]
    drawn = materialise(load_model(graph), seed).items()
    tensors = dict(renamed(shape, {name: torch.from_numpy(value) for name, value in drawn}))
    for layer in range(shape.layers):
        for letter in "qkv":
            place = f"model.layers.{layer}.self_attn.{letter}_proj"
            tensors.setdefault(f"{place}.bias", torch.zeros(len(tensors[f"{place}.weight"])))
    writer = gguf.GGUFWriter(path, "qwen2")
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.width)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.inner)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.key_value_heads)
    writer.add_layer_norm_rms_eps(shape.epsilon)
    writer.add_rope_freq_base(shape.theta)
    writer.add_vocab_size(shape.vocabulary)
    writer.add_tokenizer_model("no_vocab")
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.QWEN2, shape.layers)
    for name, values in tensors.items():
        if name != "lm_head.weight" or not shape.tied:
            writer.add_tensor(names.get_name(name, (".weight", ".bias")), values.numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
