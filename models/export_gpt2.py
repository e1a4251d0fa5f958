# /// script
# requires-python = ">=3.11"
# dependencies = ["onnx==1.23.2", "onnxscript==0.7.2", "torch==2.13.0"]
# ///
"""Exports GPT-2 of 124 million and 1.5 billion parameters, and nanoGPT's model of characters.

Radford et al. 2019, "Language Models are Unsupervised Multitask Learners", and train_gpt2's small
brother in karpathy/nanoGPT, config/train_shakespeare_char.py, which has neither biases nor tokens
of several characters. The decoder is the matrix of token embeddings itself. The softmax is in the
loss.
"""

from __future__ import annotations

import math
from functools import partial

import torch
from exporting import Networks, export
from torch import nn
from transformer import Attention, FeedForward, causal, first_values, positions

EPSILON = 1e-5
DEVIATION = 0.02
LARGE = ("gpt2_xl",)  # more weights than an exporter should hold; its form is proved on gpt2
LAYERS = {"gpt2": 12, "gpt2_xl": 48, "nanogpt_characters": 6}


class Block(nn.Module):
    """Attention and feed-forward net, each of normalized tokens and added to what went in."""

    def __init__(self, width: int, heads: int, dropout: float, bias: bool) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(width, EPSILON, bias=bias)
        self.attention = Attention(width, heads, dropout, bias=bias)
        self.feed_forward_norm = nn.LayerNorm(width, EPSILON, bias=bias)
        gelu = partial(nn.functional.gelu, approximate="tanh")
        self.feed_forward = FeedForward(width, 4 * width, gelu, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor, batch: int) -> torch.Tensor:
        """Rows to rows."""
        read = self.attention_norm(tokens)
        tokens = tokens + self.dropout(self.attention(read, read, mask, batch))
        return tokens + self.dropout(self.feed_forward(self.feed_forward_norm(tokens)))


class Gpt(nn.Module):
    """[batch, sequence, vocabulary] logits of the next token at each position."""

    def __init__(
        self,
        layers: int,
        width: int,
        heads: int,
        *,
        vocabulary: int,
        context: int,
        dropout: float,
        bias: bool,
    ) -> None:
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        self.position = nn.Embedding(context, width)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(Block(width, heads, dropout, bias) for _ in range(layers))
        self.norm = nn.LayerNorm(width, EPSILON, bias=bias)

    def forward(self, token_ids: torch.Tensor) -> torch.Tensor:
        """Logits of a batch of sequences."""
        mask = causal(token_ids)
        embedded = self.token(token_ids) + self.position(positions(token_ids))
        tokens = self.dropout(embedded.flatten(0, 1))
        for block in self.blocks:
            tokens = block(tokens, mask, token_ids.shape[0])
        logits = nn.functional.linear(self.norm(tokens), self.token.weight)
        return logits.reshape(*token_ids.shape, -1)


def networks() -> Networks:
    """The networks by the names of their files, with example inputs."""
    gpt2 = partial(Gpt, vocabulary=50_257, context=1024, dropout=0.1, bias=True)
    small = partial(Gpt, vocabulary=65, context=256, dropout=0.2, bias=False)
    ids = {"token_ids": torch.randint(65, (3, 16))}
    return {
        "gpt2": (lambda: gpt2(LAYERS["gpt2"], 768, 12), ids),
        "gpt2_xl": (lambda: gpt2(LAYERS["gpt2_xl"], 1600, 25), ids),
        "nanogpt_characters": (lambda: small(LAYERS["nanogpt_characters"], 384, 6), ids),
    }


if __name__ == "__main__":
    for name, (network, inputs) in networks().items():
        with torch.device("meta" if name in LARGE else "cpu"):
            module = network()
        # What is added to the residual stream is smaller the more layers add to it (section 2.3).
        residual = {
            "distribution": "normal",
            "scale": DEVIATION / math.sqrt(2 * LAYERS[name]),
        }
        print(
            export(
                module,
                name,
                inputs,
                dynamic={"token_ids": {0: "batch", 1: "sequence"}},
                initial={
                    "*.output.weight": residual,
                    "*.outer.weight": residual,
                    **first_values(DEVIATION),
                },
            )
        )
