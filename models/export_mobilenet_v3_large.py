# /// script
# requires-python = ">=3.11"
# dependencies = ["onnx==1.23.2", "onnxscript==0.7.2", "torch==2.13.0"]
# ///
"""Exports MobileNetV3-Large for images of 224 x 224 in 1000 classes: mobilenet_v3_large.onnx.

Howard et al. 2019, "Searching for MobileNetV3" (arXiv 1905.02244), table 1, with the classifier and
the first values of torchvision's version, 5,483,032 parameters. The softmax is in the loss.
"""

from __future__ import annotations

import math

import torch
from export_efficientnet_b0 import Convolution
from exporting import Networks, export
from torch import nn
from torch.nn import functional

# Kernel size, channels within, filters, whether channels are excited, activation, stride.
BLOCKS = (
    (3, 16, 16, False, "relu", 1),
    (3, 64, 24, False, "relu", 2),
    (3, 72, 24, False, "relu", 1),
    (5, 72, 40, True, "relu", 2),
    (5, 120, 40, True, "relu", 1),
    (5, 120, 40, True, "relu", 1),
    (3, 240, 80, False, "hardswish", 2),
    (3, 200, 80, False, "hardswish", 1),
    (3, 184, 80, False, "hardswish", 1),
    (3, 184, 80, False, "hardswish", 1),
    (3, 480, 112, True, "hardswish", 1),
    (3, 672, 112, True, "hardswish", 1),
    (5, 672, 160, True, "hardswish", 2),
    (5, 960, 160, True, "hardswish", 1),
    (5, 960, 160, True, "hardswish", 1),
)
ACTIVATIONS = {"relu": functional.relu, "hardswish": functional.hardswish}
STEM, HEAD, HIDDEN, CLASSES = 16, 960, 1280, 1000
DROPOUT = 0.2


def squeezed(channels: int) -> int:
    """A quarter of the channels as a multiple of 8, never less than nine tenths of it."""
    quarter = channels // 4
    rounded = max(8, (quarter + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * quarter else rounded


class Excitation(nn.Module):
    """Scale each channel by what the averages of all channels say of it."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(channels, squeezed(channels), 1)
        self.excite = nn.Conv2d(squeezed(channels), channels, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[batch, channels, h, w] to the same shape."""
        average = x.mean((2, 3), keepdim=True)
        return x * functional.hardsigmoid(self.excite(functional.relu(self.squeeze(average))))


class Block(nn.Module):
    """Expand, convolve each channel by itself, excite, project, and add the input if it fits."""

    def __init__(
        self,
        channels: int,
        kernel: int,
        inner: int,
        filters: int,
        excited: bool,
        activation: str,
        stride: int,
    ) -> None:
        super().__init__()
        self.expand = Convolution(channels, inner) if inner != channels else None
        self.depthwise = Convolution(inner, inner, kernel, stride, groups=inner)
        self.excitation = Excitation(inner) if excited else nn.Identity()
        self.project = Convolution(inner, filters)
        self.activate = ACTIVATIONS[activation]
        self.fits = stride == 1 and channels == filters

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[batch, channels, h, w] to [batch, filters, h / stride, w / stride]."""
        y = self.activate(self.expand(x)) if self.expand is not None else x
        y = self.project(self.excitation(self.activate(self.depthwise(y))))
        return x + y if self.fits else y


class MobileNetV3Large(nn.Module):
    """[batch, 3, 224, 224] normalized pixels to [batch, 1000] logits."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = Convolution(3, STEM, 3, 2)
        self.blocks = nn.Sequential()
        channels = STEM
        for kernel, inner, filters, excited, activation, stride in BLOCKS:
            self.blocks.append(Block(channels, kernel, inner, filters, excited, activation, stride))
            channels = filters
        self.head = Convolution(channels, HEAD)
        self.hidden = nn.Linear(HEAD, HIDDEN)
        self.dropout = nn.Dropout(DROPOUT)
        self.classifier = nn.Linear(HIDDEN, CLASSES)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Logits of a batch of images."""
        features = self.blocks(functional.hardswish(self.stem(image)))
        features = functional.hardswish(self.head(features)).mean((2, 3))
        hidden = functional.hardswish(self.hidden(features))
        return self.classifier(self.dropout(hidden))


def first_values(network: nn.Module) -> dict[str, dict[str, str | float]]:
    """Normal kernels of variance 2 / (k² · filters), normal layers of deviation 0.01.

    They are those of torchvision's mobilenetv3.py (He et al. 2015, arXiv 1502.01852, by fan out).
    """
    kernels = {
        name: math.sqrt(2 / (kernel[2:].numel() * kernel[0]))
        for name, kernel in ((name, value.shape) for name, value in network.named_parameters())
        if len(kernel) == 4
    }
    scales = {**kernels, "hidden.weight": 0.01, "classifier.weight": 0.01}
    return {name: {"distribution": "normal", "scale": scale} for name, scale in scales.items()}


def networks() -> Networks:
    """The network by the name of its file, with example inputs."""
    return {"mobilenet_v3_large": (MobileNetV3Large, {"image": torch.rand(2, 3, 224, 224)})}


if __name__ == "__main__":
    for name, (make, inputs) in networks().items():
        network = make()
        print(export(network, name, inputs, initial=first_values(network)))
