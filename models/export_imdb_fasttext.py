# /// script
# requires-python = ">=3.11"
# dependencies = ["onnx==1.23.2", "onnxscript==0.7.2", "torch==2.13.0"]
# ///
"""Exports the bag of word and bigram embeddings of Woolf's benchmark: imdb_fasttext.onnx.

The mean of 400 embeddings of 50 numbers and one logit (the Keras example imdb_fasttext.py that
minimaxir/deep-learning-cpu-gpu-benchmark ran in 2017). How many bigrams its vocabulary has stands
in no source; see the spec. The sigmoid is in the loss.
"""

from __future__ import annotations

import torch
from exporting import Networks, export
from torch import nn

VOCABULARY = 1_200_000  # assumed: 20,000 words and all bigrams of the training reviews
LENGTH = 400


class ImdbFastText(nn.Module):
    """[batch, 400] indices of words and bigrams to [batch] logits of a good review."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 50)
        self.dense = nn.Linear(50, 1)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Padding counts as a token in the mean, as in the source."""
        return self.dense(self.embedding(tokens).mean(1)).squeeze(1)


def networks() -> Networks:
    """The network by the name of its file, with example inputs."""
    return {"imdb_fasttext": (ImdbFastText, {"tokens": torch.randint(0, VOCABULARY, (3, LENGTH))})}


INITIAL = {"embedding.weight": {"distribution": "uniform", "scale": 0.05}}

if __name__ == "__main__":
    for name, (network, inputs) in networks().items():
        print(export(network(), name, inputs, initial=INITIAL))
