"""Words from their characters: embeddings, convolutions, maximum over the word, highway layers.

Exporters of language models import it by path. The network of Kim, Jernite, Sontag and Rush,
"Character-Aware Neural Language Models" (AAAI 2016, arXiv 1508.06615).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn


class CharacterCnn(nn.Module):
    """[words, characters] indices to [words, sum(maps)].

    A convolution of each width over the padded word without further padding, then ``pool``.
    """

    def __init__(
        self, vocabulary: int, embedding: int, widths: Sequence[int], maps: Sequence[int]
    ) -> None:
        super().__init__()
        self.characters = nn.Embedding(vocabulary, embedding)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(embedding, count, width) for width, count in zip(widths, maps, strict=True)
        )

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        """The features of each word."""
        embedded = self.characters(words).transpose(1, 2)
        return torch.cat([self.pool(layer(embedded)) for layer in self.convolutions], dim=1)

    def pool(self, convolved: torch.Tensor) -> torch.Tensor:
        """[words, maps, places] to [words, maps]: tanh, then the maximum over all places."""
        return torch.tanh(convolved).amax(2)


class Highway(nn.Module):
    """t * relu(x A + a) + (1 - t) * x with t = sigmoid(x B + b + gate_bias).

    Srivastava, Greff and Schmidhuber, "Highway Networks" (arXiv 1505.00387).
    """

    def __init__(self, size: int, gate_bias: float = -2.0) -> None:
        super().__init__()
        self.transform = nn.Linear(size, size)
        self.gate = nn.Linear(size, size)
        self.gate_bias = gate_bias

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[rows, size] to [rows, size]."""
        t = torch.sigmoid(self.gate(x) + self.gate_bias)
        return t * torch.relu(self.transform(x)) + (1.0 - t) * x
