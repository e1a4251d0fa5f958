# /// script
# requires-python = ">=3.11"
# dependencies = ["onnx==1.23.2", "onnxscript==0.7.2", "torch==2.13.0"]
# ///
"""Exports the character model with two losses of Woolf's benchmark: text_generator_keras.onnx.

Embeddings of 300 numbers and an LSTM of 128 units; one softmax directly on it, another after two
hidden layers with batch normalization (text_generator_keras.py that
minimaxir/deep-learning-cpu-gpu-benchmark ran in 2017). Both softmaxes are in the loss.
"""

from __future__ import annotations

import torch
from exporting import Networks, export
from recurrent import Lstm, keras_initial
from torch import nn

SYMBOLS, LENGTH = 57, 40


class TextGeneratorKeras(nn.Module):
    """[batch, 40] characters to [batch, 57] logits of the next, and the auxiliary logits."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(SYMBOLS, 300)
        self.lstm = Lstm(300, 128, forget_bias=1.0)
        self.auxiliary = nn.Linear(128, SYMBOLS)
        self.dense1 = nn.Linear(128, 512, bias=False)
        self.norm1 = nn.BatchNorm1d(512, eps=1e-3, momentum=0.01)  # Keras's defaults
        self.dense2 = nn.Linear(512, 256, bias=False)
        self.norm2 = nn.BatchNorm1d(256, eps=1e-3, momentum=0.01)
        self.predict = nn.Linear(256, SYMBOLS)

    def forward(self, characters: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Both from the LSTM's last output."""
        _, (h, _) = self.lstm(self.embedding(characters.transpose(0, 1)))
        hidden = torch.relu(self.norm1(self.dense1(h)))
        hidden = torch.relu(self.norm2(self.dense2(hidden)))
        return self.predict(hidden), self.auxiliary(h)


def networks() -> Networks:
    """The network by the name of its file, with example inputs."""
    characters = torch.randint(0, SYMBOLS, (3, LENGTH))
    return {"text_generator_keras": (TextGeneratorKeras, {"characters": characters})}


OUTPUTS = ("logits", "auxiliary_logits")
INITIAL = {
    "embedding.weight": {"distribution": "uniform", "scale": 0.05},
    **keras_initial("lstm", inputs=300, units=128),
}

if __name__ == "__main__":
    for name, (network, inputs) in networks().items():
        print(export(network(), name, inputs, outputs=OUTPUTS, initial=INITIAL))
