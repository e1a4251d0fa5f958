# /// script
# requires-python = ">=3.11"
# dependencies = ["onnx==1.23.2", "onnxscript==0.7.2", "torch==2.13.0"]
# ///
"""Exports the review classifier of Woolf's benchmark: imdb_bidirectional_lstm.onnx.

Embeddings of 128 numbers, a bidirectional LSTM of 64 units and dropout of 0.5 (the Keras example
imdb_bidirectional_lstm.py that minimaxir/deep-learning-cpu-gpu-benchmark ran in 2017). The sigmoid
is in the loss.
"""

from __future__ import annotations

import torch
from exporting import Networks, export
from recurrent import Lstm, keras_initial
from torch import nn

VOCABULARY, LENGTH = 20_000, 100


class ImdbBidirectionalLstm(nn.Module):
    """[batch, 100] indices of words to [batch] logits of a good review."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 128)
        self.lstm = Lstm(128, 64, directions=2, forget_bias=1.0)
        self.dropout = nn.Dropout(0.5)
        self.dense = nn.Linear(128, 1)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        """Use the last output of either direction, its h after all steps."""
        _, (h, _) = self.lstm(self.embedding(words.transpose(0, 1)))
        return self.dense(self.dropout(h)).squeeze(1)


def networks() -> Networks:
    """The network by the name of its file, with example inputs."""
    words = torch.randint(0, VOCABULARY, (3, LENGTH))
    return {"imdb_bidirectional_lstm": (ImdbBidirectionalLstm, {"words": words})}


INITIAL = {
    "embedding.weight": {"distribution": "uniform", "scale": 0.05},
    **keras_initial("lstm", inputs=128, units=64),
}

if __name__ == "__main__":
    for name, (network, inputs) in networks().items():
        print(export(network(), name, inputs, initial=INITIAL))
