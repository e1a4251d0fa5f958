# /// script
# requires-python = ">=3.11"
# dependencies = ["onnx==1.23.2", "onnxscript==0.7.2", "torch==2.13.0"]
# ///
"""Exports the Transformer of Vaswani et al. 2017, base and big: an encoder and a decoder.

arXiv 1706.03762, table 3, for English to German: source, target and decoder share one matrix of
37,000 embeddings. As in tensorflow/tensor2tensor the dense layers of attention have no biases. The
softmax is in the loss.
"""

from __future__ import annotations

import math

import torch
from exporting import Networks, export
from torch import nn
from transformer import Attention, FeedForward, causal, padding, positions

VOCABULARY = 37_000
LAYERS = 6
EPSILON = 1e-6
LARGE = ("transformer_big",)  # more weights than an exporter should hold; base proves the form
WIDTH = {"transformer_base": 512, "transformer_big": 1024}


class Sublayer(nn.Module):
    """What comes out of a layer is dropped in part, added to what went in, and normalized."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width, EPSILON)
        self.dropout = nn.Dropout(dropout)

    def forward(self, tokens: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        """Rows to rows."""
        return self.norm(tokens + self.dropout(out))


class EncoderBlock(nn.Module):
    """Attention of the source to itself, then the feed-forward net."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.attention = Attention(width, heads, 0.0, bias=False)
        self.attended = Sublayer(width, dropout)
        self.feed_forward = FeedForward(width, 4 * width, torch.relu)
        self.fed = Sublayer(width, dropout)

    def forward(self, source: torch.Tensor, mask: torch.Tensor, batch: int) -> torch.Tensor:
        """Rows to rows."""
        source = self.attended(source, self.attention(source, source, mask, batch))
        return self.fed(source, self.feed_forward(source))


class DecoderBlock(nn.Module):
    """Attention of the target to its past and to the source, then the feed-forward net."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.attention = Attention(width, heads, 0.0, bias=False)
        self.attended = Sublayer(width, dropout)
        self.source_attention = Attention(width, heads, 0.0, bias=False)
        self.source_attended = Sublayer(width, dropout)
        self.feed_forward = FeedForward(width, 4 * width, torch.relu)
        self.fed = Sublayer(width, dropout)

    def forward(
        self,
        target: torch.Tensor,
        source: torch.Tensor,
        masks: tuple[torch.Tensor, torch.Tensor],
        batch: int,
    ) -> torch.Tensor:
        """Rows to rows; the masks are of the target's past and of the source's padding."""
        past, shown = masks
        target = self.attended(target, self.attention(target, target, past, batch))
        read = self.source_attention(target, source, shown, batch)
        target = self.source_attended(target, read)
        return self.fed(target, self.feed_forward(target))


class Transformer(nn.Module):
    """[batch, target, vocabulary] logits of the next target token at each position."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.width = width
        self.embedding = nn.Embedding(VOCABULARY, width)
        self.dropout = nn.Dropout(dropout)
        self.encoder = nn.ModuleList(EncoderBlock(width, heads, dropout) for _ in range(LAYERS))
        self.decoder = nn.ModuleList(DecoderBlock(width, heads, dropout) for _ in range(LAYERS))

    def forward(
        self, source_ids: torch.Tensor, source_mask: torch.Tensor, target_ids: torch.Tensor
    ) -> torch.Tensor:
        """Logits of a batch of pairs; ``target_ids`` are shifted right by one."""
        batch = source_ids.shape[0]
        shown, past = padding(source_mask), causal(target_ids)
        source, target = self._embedded(source_ids), self._embedded(target_ids)
        for block in self.encoder:
            source = block(source, shown, batch)
        for block in self.decoder:
            target = block(target, source, (past, shown), batch)
        logits = nn.functional.linear(target, self.embedding.weight)
        return logits.reshape(*target_ids.shape, -1)

    def _embedded(self, ids: torch.Tensor) -> torch.Tensor:
        """Rows of embeddings times the root of the width, plus waves (sections 3.4 and 3.5)."""
        vectors = self.embedding(ids) * math.sqrt(self.width)
        return self.dropout((vectors + self._waves(ids)).flatten(0, 1))

    def _waves(self, ids: torch.Tensor) -> torch.Tensor:
        """[sequence, width] sines and cosines; the first half of the width holds the sines."""
        half = self.width // 2
        exponent = torch.arange(half, device=ids.device).float() * (-math.log(10_000.0) / half)
        angle = positions(ids).float().unsqueeze(1) * exponent.exp().unsqueeze(0)
        return torch.cat((angle.sin(), angle.cos()), 1)


def networks() -> Networks:
    """The networks by the names of their files, with example inputs."""
    pair = {
        "source_ids": torch.randint(VOCABULARY, (3, 12)),
        "source_mask": torch.ones(3, 12, dtype=torch.int64),
        "target_ids": torch.randint(VOCABULARY, (3, 16)),
    }
    return {
        "transformer_base": (lambda: Transformer(512, 8, 0.1), pair),
        "transformer_big": (lambda: Transformer(1024, 16, 0.3), pair),
    }


if __name__ == "__main__":
    for name, (network, inputs) in networks().items():
        with torch.device("meta" if name in LARGE else "cpu"):
            module = network()
        embedding = {"distribution": "normal", "scale": 1 / math.sqrt(WIDTH[name])}
        print(
            export(
                module,
                name,
                inputs,
                dynamic={
                    "source_ids": {0: "batch", 1: "source"},
                    "source_mask": {0: "batch", 1: "source"},
                    "target_ids": {0: "batch", 1: "target"},
                },
                initial={"embedding.weight": embedding},
            )
        )
