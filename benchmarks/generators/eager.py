"""transformers' own modules in PyTorch's eager mode with a static cache, and our weights in them.

Attention is PyTorch's ``scaled_dot_product_attention``, transformers' default, and the head sees
the last position alone. The loop over tokens is written out here: ``generate`` would do more.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from generators.case import Array, Case, weights

_MODELS = Path(__file__).parents[2] / "models"
_GPT2 = {"attention_norm": "ln_1", "qkv": "attn.c_attn", "out": "attn.c_proj", "mlp_norm": "ln_2"}
_GPT2 |= {"mlp.up": "mlp.c_fc", "mlp.down": "mlp.c_proj"}
_LLAMA = {
    "attention_norm": "input_layernorm",
    "out": "self_attn.o_proj",
    "mlp_norm": "post_attention_layernorm",
    "mlp.gate": "mlp.gate_proj",
    "mlp.up": "mlp.up_proj",
    "mlp.down": "mlp.down_proj",
}


class Eager:
    """A module of transformers, see ``Engine``."""

    def __init__(self, case: Case, folder: Path) -> None:  # noqa: ARG002 - as every engine's
        os.environ["HF_HUB_OFFLINE"] = "1"
        import transformers

        torch.set_num_threads(case.threads)
        shape = _shape(Path(case.graph).stem)
        self._network = _network(transformers, shape).eval()
        held = {name: torch.from_numpy(value) for name, value in weights(case.decoder()).items()}
        self._network.load_state_dict(dict(_state(shape, held)))
        self._cache = transformers.StaticCache(self._network.config, max_cache_len=case.longest)
        self._prompts = torch.from_numpy(case.prompts())
        self._next, self._logits = self._prompts, torch.empty(0)

    def scores(self) -> Array:
        """See ``Engine``."""
        self.fresh()
        self.prefill()
        first = self._logits.numpy().copy()
        self.decode()
        return np.stack([first, self._logits.numpy()])

    @torch.inference_mode()
    def fresh(self) -> None:
        """See ``Engine``."""
        self._cache.reset()

    def prefill(self) -> None:
        """See ``Engine``."""
        self._take(self._prompts)

    def decode(self) -> None:
        """See ``Engine``."""
        self._take(self._next)

    @torch.inference_mode()
    def _take(self, tokens: torch.Tensor) -> None:
        found = self._network(tokens, past_key_values=self._cache, logits_to_keep=1)
        self._logits = found.logits[:, -1]
        self._next = self._logits.argmax(dim=-1, keepdim=True)


def _shape(name: str) -> Any:
    """What the exporter was told, of which theta and epsilon stand in no spec."""
    sys.path.insert(0, str(_MODELS))
    return importlib.import_module("export_decoders").SHAPES[name]


def _network(library: Any, shape: Any) -> Any:
    if shape.theta is None:
        sizes = {"n_positions": shape.context, "n_embd": shape.width, "n_inner": shape.inner}
        sizes |= {"n_layer": shape.layers, "n_head": shape.heads, "vocab_size": shape.vocabulary}
        told = library.GPT2Config(**sizes, layer_norm_epsilon=shape.epsilon)
        return library.GPT2LMHeadModel(told)
    family = "Qwen2" if shape.projection_bias else "Llama"
    told = getattr(library, f"{family}Config")(
        vocab_size=shape.vocabulary,
        hidden_size=shape.width,
        intermediate_size=shape.inner,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.key_value_heads,
        max_position_embeddings=shape.context,
        rms_norm_eps=shape.epsilon,
        tie_word_embeddings=shape.tied,
        rope_parameters={"rope_type": "default", "rope_theta": shape.theta},
    )
    return getattr(library, f"{family}ForCausalLM")(told)


def _state(shape: Any, held: dict[str, torch.Tensor]) -> Iterator[tuple[str, torch.Tensor]]:
    """Our parameters under transformers' names and as its modules hold them."""
    gpt2 = shape.theta is None
    root, blocks, names = ("transformer", "h", _GPT2) if gpt2 else ("model", "layers", _LLAMA)
    outer = {"embed": "wte" if gpt2 else "embed_tokens", "position": "wpe"}
    outer["norm"] = "ln_f" if gpt2 else "norm"
    yield "lm_head.weight", held["embed.weight"]
    for name, values in held.items():
        path, _, part = name.rpartition(".")
        if path in outer:
            yield f"{root}.{outer[path]}.{part}", values
            continue
        _, layer, place = path.split(".", 2)
        block = f"{root}.{blocks}.{layer}"
        # GPT-2's projections are [inner, features], as ours; nn.Linear's are turned.
        turned = values if gpt2 or values.ndim == 1 else values.T.contiguous()
        if place in names:
            yield f"{block}.{names[place]}.{part}", turned
            continue
        shared = shape.key_value_heads * shape.head_size
        for one, split in zip("qkv", turned.split([shape.width, shared, shared]), strict=True):
            yield f"{block}.self_attn.{one}_proj.{part}", split
