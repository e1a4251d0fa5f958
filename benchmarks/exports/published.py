"""Architectures of transformers at small sizes, from their configurations.

Each architecture is a line: the family's name in transformers, the head, and the names of the sizes
in the family's configuration (None: no such size). Texts are tokens, images are 32 pixels square,
dropout is off and weights are random.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import transformers
from architectures import BATCH, CLASSES, Architecture
from torch import Tensor, nn

_TOKENS, _LENGTH, _WIDTH, _PIXELS = 23, 6, 16, 32
_SIZES: Mapping[str, Any] = {
    "vocab_size": _TOKENS,
    "hidden_size": _WIDTH,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 32,
    "max_position_embeddings": 32,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "num_labels": CLASSES,
    "image_size": _PIXELS,
    "patch_size": 8,
    "use_cache": False,
}
_GROUPED = {"num_key_value_heads": 2, "head_dim": 4}
_DENSE = {"hidden_sizes": [8, 12], "depths": [1, 1]}
_T5 = {"d_model": _WIDTH, "d_kv": 4, "d_ff": 32, "num_layers": 2, "num_heads": 4}
_GPTJ = {"n_embd": _WIDTH, "n_layer": 2, "n_head": 4, "rotary_dim": 4, "n_positions": 32}
_SWIN = {
    "embed_dim": 8,
    "depths": [1, 1],
    "num_heads": [2, 2],
    "window_size": 2,
    "patch_size": 4,
    "num_attention_heads": None,
    "num_hidden_layers": None,
}

_CAUSAL, _IMAGES, _SEQUENCE = "ForCausalLM", "ForImageClassification", "ForSequenceClassification"


class Scores(nn.Module):
    """A wrapper that returns a model's first output, with classes or features as the last axis."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: Tensor) -> Tensor:
        """Logits, or the last hidden states of a model without a head."""
        outputs = self.model(batch)
        return outputs.logits if "logits" in outputs else outputs.last_hidden_state


def build(name: str, head: str, sizes: Mapping[str, Any]) -> nn.Module:
    """The transformers model ``name`` with ``head`` and without dropout, wrapped in ``Scores``."""
    sized = {key: value for key, value in {**_SIZES, **sizes}.items() if value is not None}
    config = getattr(transformers, f"{name}Config")(**sized)
    for key, value in list(vars(config).items()):
        if "drop" in key and isinstance(value, float):
            setattr(config, key, 0.0)
    config._attn_implementation = "eager"
    return Scores(getattr(transformers, f"{name}{head}")(config))


_TEXTS: tuple[tuple[str, str, Mapping[str, Any]], ...] = (
    ("Roberta", _SEQUENCE, {}),
    ("DistilBert", _SEQUENCE, {"dim": _WIDTH, "n_layers": 2, "n_heads": 4, "hidden_dim": 32}),
    ("Albert", _SEQUENCE, {"embedding_size": 8}),
    ("Electra", _SEQUENCE, {"embedding_size": 8}),
    ("Deberta", _SEQUENCE, {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]}),
    ("DebertaV2", _SEQUENCE, {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]}),
    ("MPNet", _SEQUENCE, {}),
    ("SqueezeBert", _SEQUENCE, {"embedding_size": _WIDTH}),
    ("MobileBert", _SEQUENCE, {"embedding_size": 8, "intra_bottleneck_size": 8}),
    ("ConvBert", _SEQUENCE, {"embedding_size": _WIDTH}),
    ("FNet", _SEQUENCE, {}),
    ("Nystromformer", _SEQUENCE, {"num_landmarks": 2, "segment_means_seq_len": _LENGTH}),
    ("RoFormer", _SEQUENCE, {"embedding_size": _WIDTH}),
    ("Ernie", _SEQUENCE, {}),
    ("XLMRoberta", _SEQUENCE, {}),
    ("Camembert", _SEQUENCE, {}),
    ("RemBert", _SEQUENCE, {"input_embedding_size": 8, "output_embedding_size": 8}),
    ("MegatronBert", _SEQUENCE, {}),
    ("ModernBert", _SEQUENCE, {}),
    (
        "Funnel",
        _SEQUENCE,
        {
            "d_model": _WIDTH,
            "n_head": 4,
            "d_head": 4,
            "d_inner": 32,
            "block_sizes": [1, 1],
            "num_hidden_layers": None,
        },
    ),
    (
        "XLNet",
        _SEQUENCE,
        {
            "d_model": _WIDTH,
            "n_layer": 2,
            "n_head": 4,
            "d_inner": 32,
            "max_position_embeddings": None,
        },
    ),
    ("Flaubert", _SEQUENCE, {"emb_dim": _WIDTH, "n_layers": 2, "n_heads": 4}),
    ("Data2VecText", _SEQUENCE, {}),
    ("Luke", "ForMaskedLM", {"entity_vocab_size": 5, "entity_emb_size": 8}),
    ("BigBird", _SEQUENCE, {"attention_type": "original_full"}),
    ("BertGeneration", "Encoder", {}),
    ("T5", "EncoderModel", _T5),
    ("MT5", "EncoderModel", _T5),
    ("GPTNeo", _CAUSAL, {"num_layers": 2, "num_heads": 4, "attention_types": [[["global"], 2]]}),
    ("GPTNeoX", _CAUSAL, {}),
    ("GPTJ", _CAUSAL, _GPTJ),
    ("CodeGen", _CAUSAL, _GPTJ),
    ("OPT", _CAUSAL, {"ffn_dim": 32, "word_embed_proj_dim": _WIDTH}),
    ("Bloom", _CAUSAL, {"n_layer": 2, "n_head": 4}),
    ("Llama", _CAUSAL, _GROUPED),
    ("Mistral", _CAUSAL, _GROUPED),
    ("Qwen2", _CAUSAL, {"num_key_value_heads": 2}),
    ("Qwen3", _CAUSAL, _GROUPED),
    ("Gemma", _CAUSAL, _GROUPED),
    ("Gemma2", _CAUSAL, _GROUPED),
    ("Phi", _CAUSAL, {}),
    ("Phi3", _CAUSAL, {"num_key_value_heads": 2}),
    ("Falcon", _CAUSAL, {}),
    ("StableLm", _CAUSAL, {"num_key_value_heads": 2}),
    ("Olmo", _CAUSAL, {"num_key_value_heads": 2}),
    ("Olmo2", _CAUSAL, {"num_key_value_heads": 2}),
    ("Starcoder2", _CAUSAL, {"num_key_value_heads": 2}),
    ("Cohere", _CAUSAL, {"num_key_value_heads": 2}),
    ("Granite", _CAUSAL, {"num_key_value_heads": 2}),
    ("Glm", _CAUSAL, _GROUPED),
    ("Helium", _CAUSAL, _GROUPED),
    ("SmolLM3", _CAUSAL, {"num_key_value_heads": 2}),
    ("BioGpt", _CAUSAL, {}),
    ("Mpt", _CAUSAL, {"d_model": _WIDTH, "n_heads": 4, "n_layers": 2, "max_seq_len": 32}),
    ("Mamba", _CAUSAL, {"state_size": 4}),
)
_IMAGE_FAMILIES: tuple[tuple[str, str, Mapping[str, Any]], ...] = (
    ("DeiT", _IMAGES, {}),
    ("Beit", _IMAGES, {"use_relative_position_bias": True}),
    ("Data2VecVision", _IMAGES, {}),
    ("ViTMSN", _IMAGES, {}),
    ("Dinov2", _IMAGES, {}),
    ("Swin", _IMAGES, _SWIN),
    ("Swinv2", _IMAGES, _SWIN),
    ("ConvNext", _IMAGES, {"num_stages": 2, **_DENSE, "patch_size": 4}),
    ("ConvNextV2", _IMAGES, {"num_stages": 2, **_DENSE, "patch_size": 4}),
    ("ResNet", _IMAGES, {"embedding_size": 8, **_DENSE}),
    ("MobileNetV1", _IMAGES, {"depth_multiplier": 0.25}),
    ("MobileNetV2", _IMAGES, {"depth_multiplier": 0.25}),
    (
        "MobileViT",
        _IMAGES,
        {
            "hidden_sizes": [8, 12, 16],
            "neck_hidden_sizes": [8] * 7,
            "patch_size": 2,
            "mlp_ratio": 2.0,
        },
    ),
    (
        "PoolFormer",
        _IMAGES,
        {
            **_DENSE,
            "num_encoder_blocks": 2,
            "patch_sizes": [7, 3],
            "strides": [4, 2],
            "padding": [2, 1],
        },
    ),
    (
        "Segformer",
        _IMAGES,
        {
            **_DENSE,
            "num_encoder_blocks": 2,
            "num_attention_heads": [2, 2],
            "sr_ratios": [2, 1],
            "patch_sizes": [7, 3],
            "strides": [4, 2],
            "mlp_ratios": [2, 2],
        },
    ),
    (
        "Pvt",
        _IMAGES,
        {
            **_DENSE,
            "num_encoder_blocks": 2,
            "num_attention_heads": [2, 2],
            "sequence_reduction_ratios": [2, 1],
            "patch_sizes": [4, 2],
            "strides": [4, 2],
            "mlp_ratios": [2, 2],
        },
    ),
    (
        "FocalNet",
        _IMAGES,
        {
            "embed_dim": 8,
            "depths": [1, 1],
            "hidden_sizes": [8, 16],
            "focal_levels": [1, 1],
            "focal_windows": [3, 3],
            "patch_size": 4,
        },
    ),
    ("Dinov2WithRegisters", _IMAGES, {}),
    ("IJepa", _IMAGES, {}),
    ("SwiftFormer", _IMAGES, {"depths": [1, 1], "embed_dims": [8, 12]}),
)
PUBLISHED = (
    *(
        Architecture(name, partial(build, name, head, sizes), (BATCH, _LENGTH), _TOKENS)
        for name, head, sizes in _TEXTS
    ),
    *(
        Architecture(name, partial(build, name, head, sizes), (BATCH, 3, _PIXELS, _PIXELS))
        for name, head, sizes in _IMAGE_FAMILIES
    ),
)
