# /// script
# requires-python = ">=3.11"
# dependencies = ["onnx==1.23.2", "onnxscript==0.7.2", "torch==2.13.0"]
# ///
"""Exports small networks that are really trained here, to an accuracy: digits, images, text.

A perceptron and a convnet for the digits of scikit-learn, ResNet-8 by the recipe of
``export_cifar10_resnet`` for colour images of 32 x 32, and a gated recurrent network that predicts
the next character at each place of a text. The softmax is in the loss.
"""

from __future__ import annotations

from functools import partial

import torch
from export_cifar10_resnet import Cifar10ResNet
from exporting import Networks, export
from torch import nn

CHARACTERS = 8
LENGTH = 64
HIDDEN = 96
# PyTorch's own for recurrent layers.
INITIAL = {"recurrent.*": {"distribution": "uniform", "scale": HIDDEN**-0.5}}


class DigitsMlp(nn.Module):
    """[batch, 64] pixels in [0, 1] to [batch, 10] logits."""

    def __init__(self) -> None:
        super().__init__()
        self.dense1 = nn.Linear(64, 128)
        self.dense2 = nn.Linear(128, 10)
        self.dropout = nn.Dropout(0.2)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Logits of a batch of flattened images."""
        return self.dense2(self.dropout(torch.relu(self.dense1(image))))


class DigitsCnn(nn.Module):
    """[batch, 1, 8, 8] pixels in [0, 1] to [batch, 10] logits."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3, padding=1)
        self.conv2 = nn.Conv2d(32, 64, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.dropout = nn.Dropout(0.25)
        self.dense1 = nn.Linear(64 * 4 * 4, 128)
        self.dense2 = nn.Linear(128, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Logits of a batch of images."""
        features = self.pool(torch.relu(self.conv2(torch.relu(self.conv1(image)))))
        hidden = torch.relu(self.dense1(self.dropout(features.flatten(1))))
        return self.dense2(self.dropout(hidden))


class CharacterGru(nn.Module):
    """[batch, LENGTH] characters to [batch, LENGTH, CHARACTERS] logits of the next ones."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(CHARACTERS, 32)
        self.recurrent = nn.GRU(32, HIDDEN, batch_first=True)
        self.dense = nn.Linear(HIDDEN, CHARACTERS)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        """Logits at each place of a batch of texts."""
        return self.dense(self.recurrent(self.embedding(text))[0])


def networks() -> Networks:
    """The networks by the names of their files, with example inputs."""
    return {
        "digits_mlp": (DigitsMlp, {"image": torch.rand(3, 64)}),
        "digits_cnn": (DigitsCnn, {"image": torch.rand(3, 1, 8, 8)}),
        "cifar10_resnet8": (partial(Cifar10ResNet, 8), {"image": torch.rand(2, 3, 32, 32) * 256}),
        "markov_gru": (
            CharacterGru,
            {"text": torch.randint(0, CHARACTERS, (3, LENGTH), dtype=torch.int32)},
        ),
    }


if __name__ == "__main__":
    for name, (network, inputs) in networks().items():
        print(export(network(), name, inputs, initial=INITIAL))
