# /// script
# requires-python = ">=3.11"
# dependencies = ["onnx==1.23.2", "onnxscript==0.7.2", "torch==2.13.0"]
# ///
"""Exports EfficientNet-B0 for images of 224 x 224 in 1000 classes: efficientnet_b0.onnx.

Tan and Le 2019, "EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks" (arXiv
1905.11946), table 1, with the settings of tensorflow/tpu's models/official/efficientnet. Two
differences: where the image is halved it is padded on all sides, as in PyTorch's version, not on
two; and whole blocks are not dropped at random in training. The softmax is in the loss.
"""

from __future__ import annotations

import math

import torch
from exporting import Networks, export
from torch import nn
from torch.nn import functional

# Expansion, filters, blocks, stride of the first block, kernel size.
STAGES = (
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 40, 2, 2, 5),
    (6, 80, 3, 2, 3),
    (6, 112, 3, 1, 5),
    (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
)
STEM, HEAD, CLASSES = 32, 1280, 1000
SQUEEZE = 0.25  # of the channels that come into a block
DROPOUT = 0.2


class Convolution(nn.Module):
    """A convolution and the normalization of its output; ``groups`` of 1, or one per channel."""

    def __init__(
        self, channels: int, filters: int, kernel: int = 1, stride: int = 1, groups: int = 1
    ) -> None:
        super().__init__()
        self.conv = nn.Conv2d(
            channels, filters, kernel, stride, kernel // 2, groups=groups, bias=False
        )
        self.norm = nn.BatchNorm2d(filters, eps=1e-3, momentum=1 - 0.99)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[batch, channels, h, w] to [batch, filters, h / stride, w / stride]."""
        return self.norm(self.conv(x))


class Excitation(nn.Module):
    """Scale each channel by what the averages of all channels say of it."""

    def __init__(self, channels: int, squeezed: int) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(channels, squeezed, 1)
        self.excite = nn.Conv2d(squeezed, channels, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[batch, channels, h, w] to the same shape."""
        average = x.mean((2, 3), keepdim=True)
        return x * torch.sigmoid(self.excite(functional.silu(self.squeeze(average))))


class Block(nn.Module):
    """Expand, convolve each channel by itself, excite, project, and add the input if it fits."""

    def __init__(
        self, channels: int, expansion: int, filters: int, stride: int, kernel: int
    ) -> None:
        super().__init__()
        inner = channels * expansion
        self.expand = Convolution(channels, inner) if expansion > 1 else None
        self.depthwise = Convolution(inner, inner, kernel, stride, groups=inner)
        self.excitation = Excitation(inner, int(channels * SQUEEZE))
        self.project = Convolution(inner, filters)
        self.fits = stride == 1 and channels == filters

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[batch, channels, h, w] to [batch, filters, h / stride, w / stride]."""
        y = functional.silu(self.expand(x)) if self.expand is not None else x
        y = self.project(self.excitation(functional.silu(self.depthwise(y))))
        return x + y if self.fits else y


class EfficientNetB0(nn.Module):
    """[batch, 3, 224, 224] normalized pixels to [batch, 1000] logits."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = Convolution(3, STEM, 3, 2)
        self.blocks = nn.Sequential()
        channels = STEM
        for expansion, filters, blocks, stride, kernel in STAGES:
            for block in range(blocks):
                first = stride if block == 0 else 1
                self.blocks.append(Block(channels, expansion, filters, first, kernel))
                channels = filters
        self.head = Convolution(channels, HEAD)
        self.dropout = nn.Dropout(DROPOUT)
        self.classifier = nn.Linear(HEAD, CLASSES)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Logits of a batch of images."""
        features = functional.silu(self.head(self.blocks(functional.silu(self.stem(image)))))
        return self.classifier(self.dropout(features.mean((2, 3))))


def first_values(network: nn.Module) -> dict[str, dict[str, str | float]]:
    """Normal kernels of variance 2 / (k² · filters), a uniform classifier within 1 / √classes.

    They are those of efficientnet_model.py in tensorflow/tpu, whose kernels of single channels
    count as one filter.
    """
    kernels = {
        name: math.sqrt(2 / (kernel[2:].numel() * (kernel[0] if kernel[1] > 1 else 1)))
        for name, kernel in ((name, value.shape) for name, value in network.named_parameters())
        if len(kernel) == 4
    }
    values: dict[str, dict[str, str | float]] = {
        name: {"distribution": "normal", "scale": scale} for name, scale in kernels.items()
    }
    limit = 1 / math.sqrt(CLASSES)
    return values | {"classifier.weight": {"distribution": "uniform", "scale": limit}}


def networks() -> Networks:
    """The network by the name of its file, with example inputs."""
    return {"efficientnet_b0": (EfficientNetB0, {"image": torch.rand(2, 3, 224, 224)})}


if __name__ == "__main__":
    for name, (make, inputs) in networks().items():
        network = make()
        print(export(network, name, inputs, initial=first_values(network)))
