# /// script
# requires-python = ">=3.11"
# dependencies = ["onnx==1.23.2", "onnxscript==0.7.2", "torch==2.13.0"]
# ///
"""Exports ResNet-50 for images of 224 x 224: resnet50.onnx, and resnet50_pets.onnx of 37 classes.

He et al. 2015, "Deep Residual Learning for Image Recognition" (arXiv 1512.03385), table 1. Where a
stage halves the image, the 3x3 convolution has the stride, as in torchvision and MLPerf ("v1.5");
in the paper the 1x1 convolution before it has. ImageNet has 1000 classes; the other file has the
classifier that fine-tuning puts in its place for the pets of Oxford. The softmax is in the loss.
"""

from __future__ import annotations

import math
from functools import partial

import torch
from exporting import Networks, export
from torch import nn

# Inner channels and blocks of each stage; a block puts out four times its inner channels.
STAGES = ((64, 3), (128, 4), (256, 6), (512, 3))
EXPANSION = 4
CLASSES = {"resnet50": 1000, "resnet50_pets": 37}


class Convolution(nn.Module):
    """A convolution and the normalization of its output; a padding that keeps the size."""

    def __init__(self, channels: int, filters: int, kernel: int, stride: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, kernel, stride, kernel // 2, bias=False)
        self.norm = nn.BatchNorm2d(filters)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[batch, channels, h, w] to [batch, filters, h / stride, w / stride]."""
        return self.norm(self.conv(x))


class Bottleneck(nn.Module):
    """Narrow, convolve, widen, and add the input, projected where its shape differs."""

    def __init__(self, channels: int, inner: int, stride: int) -> None:
        super().__init__()
        outer = inner * EXPANSION
        self.narrow = Convolution(channels, inner, 1)
        self.middle = Convolution(inner, inner, 3, stride)
        self.widen = Convolution(inner, outer, 1)
        projected = channels != outer
        self.shortcut = Convolution(channels, outer, 1, stride) if projected else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The activated sum of both ways."""
        y = torch.relu(self.middle(torch.relu(self.narrow(x))))
        return torch.relu(self.widen(y) + self.shortcut(x))


class ResNet50(nn.Module):
    """[batch, 3, 224, 224] normalized pixels to [batch, classes] logits."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.stem = Convolution(3, 64, 7, 2)
        self.pool = nn.MaxPool2d(3, 2, padding=1)
        self.stages = nn.Sequential()
        channels = 64
        for index, (inner, blocks) in enumerate(STAGES):
            stage = nn.Sequential()
            for block in range(blocks):
                stage.append(Bottleneck(channels, inner, 2 if index and not block else 1))
                channels = inner * EXPANSION
            self.stages.append(stage)
        self.classifier = nn.Linear(channels, classes)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Logits of a batch of images."""
        features = self.stages(self.pool(torch.relu(self.stem(image))))
        return self.classifier(features.mean((2, 3)))


def first_values(network: nn.Module) -> dict[str, dict[str, str | float]]:
    """Normal kernels of variance 2 / (k² · filters), so that gradients keep their size.

    He et al. 2015, "Delving Deep into Rectifiers" (arXiv 1502.01852), equation 14. A block begins
    as its shortcut alone, by a last gain of 0 (Goyal et al. 2017, arXiv 1706.02677, section 5.1):
    so the features are of a moderate size even where all but the classifier stays as it is.
    """
    kernels = {
        name: math.sqrt(2 / (kernel[0] * kernel[2:].numel()))
        for name, kernel in ((name, value.shape) for name, value in network.named_parameters())
        if len(kernel) == 4
    }
    values: dict[str, dict[str, str | float]] = {
        name: {"distribution": "normal", "scale": scale} for name, scale in kernels.items()
    }
    return values | {"*.widen.norm.weight": {"distribution": "constant", "scale": 0.0}}


def networks() -> Networks:
    """The network by the names of its files, with example inputs."""
    inputs = {"image": torch.rand(2, 3, 224, 224)}
    return {name: (partial(ResNet50, classes), inputs) for name, classes in CLASSES.items()}


if __name__ == "__main__":
    for name, (make, inputs) in networks().items():
        network = make()
        print(export(network, name, inputs, initial=first_values(network)))
