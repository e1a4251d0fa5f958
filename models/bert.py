"""The body of BERT (Devlin et al. 2018, arXiv 1810.04805), which several exporters put heads on.

The exporters beside this module import it by path. Names of parameters are in our own words; the
shapes are those of google-research/bert.
"""

from __future__ import annotations

import torch
from torch import nn
from transformer import Attention, FeedForward, padding, positions

VOCABULARY = 30_522
POSITIONS = 512
DROPOUT = 0.1
EPSILON = 1e-12
# Of truncated normal first values in google-research/bert; ours are not truncated.
DEVIATION = 0.02


class Embeddings(nn.Module):
    """Word, position and segment vectors, added and normalized."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.word = nn.Embedding(VOCABULARY, width)
        self.position = nn.Embedding(POSITIONS, width)
        self.segment = nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width, EPSILON)
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, token_ids: torch.Tensor, segment_ids: torch.Tensor) -> torch.Tensor:
        """Rows [batch · sequence, width] of ids [batch, sequence]."""
        added = self.word(token_ids) + self.position(positions(token_ids))
        return self.dropout(self.norm((added + self.segment(segment_ids)).flatten(0, 1)))


class Block(nn.Module):
    """Attention and feed-forward net, each added to what went in and then normalized."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention = Attention(width, heads, DROPOUT)
        self.attention_norm = nn.LayerNorm(width, EPSILON)
        self.feed_forward = FeedForward(width, 4 * width, nn.functional.gelu)
        self.feed_forward_norm = nn.LayerNorm(width, EPSILON)
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor, batch: int) -> torch.Tensor:
        """Rows to rows."""
        seen = self.dropout(self.attention(tokens, tokens, mask, batch))
        tokens = self.attention_norm(tokens + seen)
        return self.feed_forward_norm(tokens + self.dropout(self.feed_forward(tokens)))


class Encoder(nn.Module):
    """Ids [batch, sequence] to rows [batch · sequence, width]."""

    def __init__(self, layers: int, width: int, heads: int) -> None:
        super().__init__()
        self.embeddings = Embeddings(width)
        self.encoder = nn.ModuleList(Block(width, heads) for _ in range(layers))

    def rows(
        self, token_ids: torch.Tensor, segment_ids: torch.Tensor, attention_mask: torch.Tensor
    ) -> torch.Tensor:
        """The mask is 1 for tokens and 0 for padding."""
        mask = padding(attention_mask)
        tokens = self.embeddings(token_ids, segment_ids)
        for block in self.encoder:
            tokens = block(tokens, mask, token_ids.shape[0])
        return tokens


class Bert(Encoder):
    """An encoder with a summary [batch, width] of each sequence, which is its first token's."""

    def __init__(self, layers: int, width: int, heads: int) -> None:
        super().__init__(layers, width, heads)
        self.pooler = nn.Linear(width, width)

    def forward(
        self, token_ids: torch.Tensor, segment_ids: torch.Tensor, attention_mask: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Rows [batch · sequence, width] and the summary."""
        tokens = self.rows(token_ids, segment_ids, attention_mask)
        first = tokens.reshape(*token_ids.shape, -1)[:, 0]
        return tokens, torch.tanh(self.pooler(first))


def example(sequence: int = 16) -> dict[str, torch.Tensor]:
    """The three inputs of the body for three examples."""
    return {
        "token_ids": torch.randint(VOCABULARY, (3, sequence)),
        "segment_ids": torch.randint(2, (3, sequence)),
        "attention_mask": torch.ones(3, sequence, dtype=torch.int64),
    }
