"""Common parts of the Transformer exporters: attention, the feed-forward net and first values.

Exporters in this folder import it by path. Tokens are rows [batch · sequence, width], so that every
dense layer is one Gemm that reads its weight as stored, and so is its gradient; only attention
needs [batch, sequence]. Attention is written as matrix products and a softmax.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import torch
from torch import nn

# Added to the score of a position that may not be seen. It is finite, so that a row which may see
# nothing has a softmax too.
HIDDEN = -1e9


def first_values(deviation: float) -> dict[str, Mapping[str, str | float]]:
    """Weights are normal with this standard deviation, biases 0, gains of normalizations 1."""
    return {
        "*bias": {"distribution": "constant", "scale": 0.0},
        "*norm.weight": {"distribution": "constant", "scale": 1.0},
        "*": {"distribution": "normal", "scale": deviation},
    }


def positions(tokens: torch.Tensor) -> torch.Tensor:
    """[sequence]: 0, 1, 2 and so on, for token ids [batch, sequence]."""
    return torch.arange(tokens.shape[1], device=tokens.device)


def padding(mask: torch.Tensor) -> torch.Tensor:
    """[batch, 1, 1, sequence] to add to scores, from 1 for tokens and 0 for padding."""
    return (1.0 - mask.float()).unsqueeze(1).unsqueeze(1) * HIDDEN


def causal(tokens: torch.Tensor) -> torch.Tensor:
    """[sequence, sequence] to add to scores: no position sees a later one."""
    position = positions(tokens)
    return (position.unsqueeze(1) < position.unsqueeze(0)).float() * HIDDEN


class Attention(nn.Module):
    """Multi-head attention (Vaswani et al. 2017, section 3.2)."""

    def __init__(self, width: int, heads: int, dropout: float, *, bias: bool = True) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width, bias=bias)
        self.key = nn.Linear(width, width, bias=bias)
        self.value = nn.Linear(width, width, bias=bias)
        self.output = nn.Linear(width, width, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, tokens: torch.Tensor, memory: torch.Tensor, mask: torch.Tensor, batch: int
    ) -> torch.Tensor:
        """Rows of ``tokens`` read rows of ``memory``; ``mask`` is added to the scores."""
        query = self._split(self.query(tokens), batch).transpose(1, 2)
        key = self._split(self.key(memory), batch).permute(0, 2, 3, 1)
        value = self._split(self.value(memory), batch).transpose(1, 2)
        scores = query @ key / math.sqrt(query.shape[-1]) + mask
        read = self.dropout(scores.softmax(-1)) @ value
        return self.output(read.transpose(1, 2).reshape(tokens.shape))

    def _split(self, tokens: torch.Tensor, batch: int) -> torch.Tensor:
        return tokens.reshape(batch, -1, self.heads, tokens.shape[1] // self.heads)


class FeedForward(nn.Module):
    """Two dense layers about an activation, rows to rows."""

    def __init__(
        self,
        width: int,
        inner: int,
        activation: Callable[[torch.Tensor], torch.Tensor],
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.inner = nn.Linear(width, inner, bias=bias)
        self.outer = nn.Linear(inner, width, bias=bias)
        self.activation = activation

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """``outer(activation(inner(tokens)))``."""
        return self.outer(self.activation(self.inner(tokens)))
