# /// script
# requires-python = ">=3.11"
# dependencies = ["onnx==1.23.2", "onnxscript==0.7.2", "torch==2.13.0"]
# ///
"""Exports the residual networks for CIFAR-10 of TensorFlow's cifar10_estimator: 44 and 50 layers.

Malta et al. measured them on GPUs of the cloud. He et al. 2015, "Deep Residual Learning for Image
Recognition" (arXiv 1512.03385), section 4.2: three stages of basic blocks of 16, 32 and 64
channels, with shortcuts that have no parameters (option A). Unlike the paper, the script's
shortcuts average where they halve the image, and its classifier has an eleventh class that nothing
belongs to. Images come as numbers from 0 to 255 and are scaled in the graph, as there. The softmax
is in the loss.
"""

from __future__ import annotations

from functools import partial

import torch
from exporting import Networks, export
from torch import nn
from torch.nn import functional

CHANNELS = (16, 32, 64)
CLASSES = 10 + 1


def convolution(channels: int, filters: int, stride: int) -> nn.Conv2d:
    """A 3x3 convolution without a bias, as batch normalization follows."""
    return nn.Conv2d(channels, filters, 3, stride, padding=1, bias=False)


def normalization(channels: int) -> nn.BatchNorm2d:
    """Running statistics keep 0.997 of themselves at each step."""
    return nn.BatchNorm2d(channels, eps=1e-5, momentum=1 - 0.997)


class Block(nn.Module):
    """Two convolutions and a shortcut around them: [batch, channels, h, w] to filters channels."""

    def __init__(self, channels: int, filters: int, stride: int) -> None:
        super().__init__()
        self.stride, self.added = stride, filters - channels
        self.conv1 = convolution(channels, filters, stride)
        self.norm1 = normalization(filters)
        self.conv2 = convolution(filters, filters, 1)
        self.norm2 = normalization(filters)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The activated sum of both ways."""
        y = torch.relu(self.norm1(self.conv1(x)))
        return torch.relu(self.norm2(self.conv2(y)) + self.shortcut(x))

    def shortcut(self, x: torch.Tensor) -> torch.Tensor:
        """The input, averaged by the stride, with channels of zeros on both sides."""
        if not self.added:
            return x
        half = self.added // 2
        return functional.pad(functional.avg_pool2d(x, self.stride), (0, 0, 0, 0, half, half))


class Cifar10ResNet(nn.Module):
    """[batch, 3, 32, 32] pixels in [0, 256) to [batch, 11] logits; layers are 6n + 2."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        blocks = (layers - 2) // 6
        self.conv = convolution(3, CHANNELS[0], 1)
        self.norm = normalization(CHANNELS[0])
        self.stages = nn.Sequential(*(stage(index, blocks) for index in range(len(CHANNELS))))
        self.classifier = nn.Linear(CHANNELS[-1], CLASSES)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Logits of a batch of images."""
        features = torch.relu(self.norm(self.conv(image / 128 - 1)))
        return self.classifier(self.stages(features).mean((2, 3)))


def stage(index: int, blocks: int) -> nn.Sequential:
    """Blocks of one width; the first of all stages but the first halves the image."""
    before, filters = CHANNELS[max(index - 1, 0)], CHANNELS[index]
    first = Block(before, filters, stride=1 if index == 0 else 2)
    return nn.Sequential(first, *(Block(filters, filters, 1) for _ in range(blocks - 1)))


def networks() -> Networks:
    """Both depths by the names of their files, with example inputs."""
    inputs = {"image": torch.rand(2, 3, 32, 32) * 256}
    return {
        f"cifar10_resnet{layers}": (partial(Cifar10ResNet, layers), inputs) for layers in (44, 50)
    }


if __name__ == "__main__":
    for name, (network, inputs) in networks().items():
        print(export(network(), name, inputs))
