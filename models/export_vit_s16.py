# /// script
# requires-python = ">=3.11"
# dependencies = ["onnx==1.23.2", "onnxscript==0.7.2", "torch==2.13.0"]
# ///
"""Exports the small vision Transformer on patches of 16 x 16 pixels, ViT-S/16: vit_s16.onnx.

Dosovitskiy et al. 2020, "An Image is Worth 16x16 Words" (arXiv 2010.11929), section 3.1, in the
size of Touvron et al. 2020, "Training data-efficient image transformers" (arXiv 2012.12877), table
1: 12 blocks of width 384 with 6 heads, for images of 224 x 224 in 1000 classes. Blocks are not
dropped at random in training. The softmax is in the loss.

Tokens are kept as rows [batch · tokens, width], so that every dense layer is one Gemm.
"""

from __future__ import annotations

import math

import torch
from exporting import Networks, export
from torch import nn
from torch.nn import functional

SIZE, PATCH, CLASSES = 224, 16, 1000
BLOCKS, WIDTH, HEADS = 12, 384, 6
TOKENS = 1 + (SIZE // PATCH) ** 2
EPSILON = 1e-6  # of the normalizations


class Attention(nn.Module):
    """Every token reads every token of its image, rows to rows."""

    def __init__(self) -> None:
        super().__init__()
        self.query_key_value = nn.Linear(WIDTH, 3 * WIDTH)
        self.output = nn.Linear(WIDTH, WIDTH)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """[batch · tokens, width] to the same shape."""
        parts = self.query_key_value(tokens).reshape(-1, TOKENS, 3, HEADS, WIDTH // HEADS)
        query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
        scores = query @ key.transpose(-1, -2) / math.sqrt(WIDTH // HEADS)
        read = scores.softmax(-1) @ value
        return self.output(read.transpose(1, 2).reshape(-1, WIDTH))


class Block(nn.Module):
    """Attention, then two dense layers, each on normalized tokens and added to them."""

    def __init__(self) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(WIDTH, eps=EPSILON)
        self.attention = Attention()
        self.dense_norm = nn.LayerNorm(WIDTH, eps=EPSILON)
        self.inner = nn.Linear(WIDTH, 4 * WIDTH)
        self.outer = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """[batch · tokens, width] to the same shape."""
        tokens = tokens + self.attention(self.attention_norm(tokens))
        return tokens + self.outer(functional.gelu(self.inner(self.dense_norm(tokens))))


class VisionTransformer(nn.Module):
    """[batch, 3, 224, 224] normalized pixels to [batch, 1000] logits."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, PATCH, PATCH)
        self.class_token = nn.Parameter(torch.randn(1, 1, WIDTH) * 0.02)
        self.positions = nn.Parameter(torch.randn(1, TOKENS, WIDTH) * 0.02)
        self.blocks = nn.Sequential(*(Block() for _ in range(BLOCKS)))
        self.norm = nn.LayerNorm(WIDTH, eps=EPSILON)
        self.classifier = nn.Linear(WIDTH, CLASSES)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Logits of a batch of images, from what the class token has read."""
        patches = self.patches(image).flatten(2).transpose(1, 2)
        first = self.class_token.expand(image.shape[0], -1, -1)
        tokens = torch.cat([first, patches], dim=1) + self.positions
        rows = self.blocks(tokens.reshape(-1, WIDTH))
        read = rows.reshape(-1, TOKENS, WIDTH)[:, 0]
        return self.classifier(self.norm(read))


# Normal weights of 0.02 (the source truncates them at two of its units, far away); zero biases.
FIRST_VALUES = {
    "*.bias": {"distribution": "constant", "scale": 0.0},
    "*norm.weight": {"distribution": "constant", "scale": 1.0},
    "*": {"distribution": "normal", "scale": 0.02},
}


def networks() -> Networks:
    """The network by the name of its file, with example inputs."""
    return {"vit_s16": (VisionTransformer, {"image": torch.rand(2, 3, SIZE, SIZE)})}


if __name__ == "__main__":
    for name, (network, inputs) in networks().items():
        print(export(network(), name, inputs, initial=FIRST_VALUES))
