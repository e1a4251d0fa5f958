# /// script
# requires-python = ">=3.11"
# dependencies = ["onnx==1.23.2", "onnxscript==0.7.2", "torch==2.13.0"]
# ///
"""Exports the CIFAR-10 convolutional network of Woolf's benchmark: cifar10_cnn.onnx.

Two pairs of 3x3 convolutions of 32 and of 64 channels, the second of each without padding, 2x2
max-pooling and dropout of 0.25 after each pair, 512 hidden units and dropout of 0.5 (the Keras
example cifar10_cnn.py that minimaxir/deep-learning-cpu-gpu-benchmark ran in 2017). The softmax is
in the loss.
"""

from __future__ import annotations

import torch
from exporting import Networks, export
from torch import nn


class Cifar10Cnn(nn.Module):
    """[batch, 3, 32, 32] pixels in [0, 1] to [batch, 10] logits."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 32, kernel_size=3, padding=1)
        self.conv2 = nn.Conv2d(32, 32, kernel_size=3)
        self.dropout1 = nn.Dropout(0.25)
        self.conv3 = nn.Conv2d(32, 64, kernel_size=3, padding=1)
        self.conv4 = nn.Conv2d(64, 64, kernel_size=3)
        self.dropout2 = nn.Dropout(0.25)
        self.dense1 = nn.Linear(64 * 6 * 6, 512)
        self.dropout3 = nn.Dropout(0.5)
        self.dense2 = nn.Linear(512, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Logits of a batch of images."""
        features = torch.relu(self.conv2(torch.relu(self.conv1(image))))
        features = self.dropout1(torch.max_pool2d(features, 2))
        features = torch.relu(self.conv4(torch.relu(self.conv3(features))))
        features = self.dropout2(torch.max_pool2d(features, 2))
        hidden = torch.relu(self.dense1(features.reshape(-1, 64 * 6 * 6)))
        return self.dense2(self.dropout3(hidden))


def networks() -> Networks:
    """The network by the name of its file, with example inputs."""
    return {"cifar10_cnn": (Cifar10Cnn, {"image": torch.rand(2, 3, 32, 32)})}


if __name__ == "__main__":
    for name, (network, inputs) in networks().items():
        print(export(network(), name, inputs))
