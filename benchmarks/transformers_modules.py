"""transformers' modules of epochcost's decoders, and the names and layout of their weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_GPT2_NAMES = {
    "layers": "transformer.h",
    "embed": "transformer.wte",
    "position": "transformer.wpe",
    "norm": "transformer.ln_f",
    "attention_norm": "ln_1",
    "mlp_norm": "ln_2",
    "qkv": "attn.c_attn",
    "out": "attn.c_proj",
    "mlp.up": "mlp.c_fc",
    "mlp.down": "mlp.c_proj",
}
_LLAMA_NAMES = {
    "layers": "model.layers",
    "embed": "model.embed_tokens",
    "norm": "model.norm",
    "attention_norm": "input_layernorm",
    "mlp_norm": "post_attention_layernorm",
    "out": "self_attn.o_proj",
    "mlp.gate": "mlp.gate_proj",
    "mlp.up": "mlp.up_proj",
    "mlp.down": "mlp.down_proj",
}


def network(library: Any, shape: Any) -> Any:
    """Transformers' module of an exported decoder's ``shape``, with fresh weights."""
    sizes = {
        "vocab_size": shape.vocabulary,
        "max_position_embeddings": shape.context,
        "hidden_size": shape.width,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
    }
    if shape.theta is None:
        settings = library.GPT2Config(
            **sizes, n_inner=shape.inner, layer_norm_epsilon=shape.epsilon
        )
        return library.GPT2LMHeadModel(settings)
    family = "Qwen2" if shape.projection_bias else "Llama"
    settings = getattr(library, f"{family}Config")(
        **sizes,
        intermediate_size=shape.inner,
        num_key_value_heads=shape.key_value_heads,
        rms_norm_eps=shape.epsilon,
        tie_word_embeddings=shape.tied,
        rope_parameters={"rope_type": "default", "rope_theta": shape.theta},
    )
    return getattr(library, f"{family}ForCausalLM")(settings)


def renamed(shape: Any, tensors: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The parameters of epochcost under transformers' names and in transformers' layout."""
    gpt2 = shape.theta is None
    names = _GPT2_NAMES if gpt2 else _LLAMA_NAMES
    yield "lm_head.weight", tensors["embed.weight"]
    for name, values in tensors.items():
        path, _, part = name.rpartition(".")
        if path in names:
            yield f"{names[path]}.{part}", values
            continue
        _, layer, place = path.split(".", 2)
        block = f"{names['layers']}.{layer}"
        # GPT-2's projections are [inner, features], as ours; the others' are transposed.
        turned = values if gpt2 or values.ndim == 1 else values.T.contiguous()
        if place in names:
            yield f"{block}.{names[place]}.{part}", turned
            continue
        shared = shape.key_value_heads * shape.head_size
        for letter, split in zip("qkv", turned.split([shape.width, shared, shared]), strict=True):
            yield f"{block}.self_attn.{letter}_proj.{part}", split
