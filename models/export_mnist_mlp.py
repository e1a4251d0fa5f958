# /// script
# requires-python = ">=3.11"
# dependencies = ["onnx==1.23.2", "onnxscript==0.7.2", "torch==2.13.0"]
# ///
"""Exports the MNIST multilayer perceptron of Woolf's benchmark: mnist_mlp.onnx.

784-512-512-10 with ReLU and dropout 0.2 after each hidden layer (the Keras example mnist_mlp.py
that minimaxir/deep-learning-cpu-gpu-benchmark ran in 2017). The softmax is in the loss.
"""

from __future__ import annotations

import torch
from exporting import Networks, export
from torch import nn


class MnistMlp(nn.Module):
    """[batch, 784] pixels in [0, 1] to [batch, 10] logits."""

    def __init__(self) -> None:
        super().__init__()
        self.dense1 = nn.Linear(784, 512)
        self.dense2 = nn.Linear(512, 512)
        self.dense3 = nn.Linear(512, 10)
        self.dropout1 = nn.Dropout(0.2)
        self.dropout2 = nn.Dropout(0.2)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Logits of a batch of flattened images."""
        hidden = self.dropout1(torch.relu(self.dense1(image)))
        hidden = self.dropout2(torch.relu(self.dense2(hidden)))
        return self.dense3(hidden)


def networks() -> Networks:
    """The network by the name of its file, with example inputs."""
    return {"mnist_mlp": (MnistMlp, {"image": torch.rand(3, 784)})}


if __name__ == "__main__":
    for name, (network, inputs) in networks().items():
        print(export(network(), name, inputs))
