# /// script
# requires-python = ">=3.11"
# dependencies = ["onnx==1.23.2", "onnxscript==0.7.2", "torch==2.13.0"]
# ///
"""Exports the character model of Woolf's benchmark: lstm_text_generation.onnx.

One LSTM of 128 units over 40 one-hot characters predicts the next (the Keras example
lstm_text_generation.py that minimaxir/deep-learning-cpu-gpu-benchmark ran in 2017). The softmax is
in the loss.
"""

from __future__ import annotations

import torch
from exporting import Networks, export
from recurrent import Lstm, keras_initial
from torch import nn

SYMBOLS, LENGTH = 57, 40


class LstmTextGeneration(nn.Module):
    """[batch, 40, 57] one-hot characters to [batch, 57] logits of the next."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = Lstm(SYMBOLS, 128, forget_bias=1.0)
        self.dense = nn.Linear(128, SYMBOLS)

    def forward(self, characters: torch.Tensor) -> torch.Tensor:
        """Use the LSTM's last output."""
        _, (h, _) = self.lstm(characters.transpose(0, 1))
        return self.dense(h)


def networks() -> Networks:
    """The network by the name of its file, with example inputs."""
    indices = torch.randint(0, SYMBOLS, (3, LENGTH))
    characters = nn.functional.one_hot(indices, SYMBOLS).float()
    return {"lstm_text_generation": (LstmTextGeneration, {"characters": characters})}


if __name__ == "__main__":
    for name, (network, inputs) in networks().items():
        print(export(network(), name, inputs, initial=keras_initial("lstm", SYMBOLS, 128)))
