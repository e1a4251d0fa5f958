# /// script
# requires-python = ">=3.11"
# dependencies = ["onnx==1.23.2", "onnxscript==0.7.2", "torch==2.13.0"]
# ///
"""Exports the MNIST convolutional network of Woolf's benchmark: mnist_cnn.onnx.

Two valid 3x3 convolutions of 32 and 64 channels, 2x2 max-pooling, 128 hidden units and dropout of
0.25 and 0.5 (the Keras example mnist_cnn.py that minimaxir/deep-learning-cpu-gpu-benchmark ran in
2017). The softmax is in the loss.
"""

from __future__ import annotations

import torch
from exporting import Networks, export
from torch import nn


class MnistCnn(nn.Module):
    """[batch, 1, 28, 28] pixels in [0, 1] to [batch, 10] logits."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, kernel_size=3)
        self.conv2 = nn.Conv2d(32, 64, kernel_size=3)
        self.dense1 = nn.Linear(64 * 12 * 12, 128)
        self.dense2 = nn.Linear(128, 10)
        self.dropout1 = nn.Dropout(0.25)
        self.dropout2 = nn.Dropout(0.5)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Logits of a batch of images."""
        features = torch.relu(self.conv1(image))
        features = torch.relu(self.conv2(features))
        features = self.dropout1(torch.max_pool2d(features, 2))
        hidden = features.reshape(-1, 64 * 12 * 12)
        hidden = self.dropout2(torch.relu(self.dense1(hidden)))
        return self.dense2(hidden)


def networks() -> Networks:
    """The network by the name of its file, with example inputs."""
    return {"mnist_cnn": (MnistCnn, {"image": torch.rand(3, 1, 28, 28)})}


if __name__ == "__main__":
    for name, (network, inputs) in networks().items():
        print(export(network(), name, inputs))
