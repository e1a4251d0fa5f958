"""Real architectures at small sizes: plain PyTorch, and configurations of transformers.

Every module maps a batch to class scores, with classes as the last axis. Weights are random, so
nothing is downloaded. Dropout is off, so that two runs can be compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

CLASSES = 7
BATCH = 4
_TOKENS, _LENGTH, _WIDTH = 23, 6, 16


@dataclass(frozen=True)
class Architecture:
    """A module's builder, and the shape of its batches.

    A batch has integers below ``vocabulary``, or normal floats without a vocabulary.
    """

    name: str
    build: Callable[[], nn.Module]
    shape: tuple[int, ...]
    vocabulary: int | None = None

    def inputs(self, generator: torch.Generator) -> Tensor:
        """A random batch without tokens 0 to 2, which PyTorch may treat as padding."""
        if self.vocabulary is not None:
            return torch.randint(3, self.vocabulary, self.shape, generator=generator)
        return torch.randn(self.shape, generator=generator)


class Residual(nn.Module):
    """Two convolutions with batch normalization, and a shortcut around them."""

    def __init__(self, into: int, out: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(into, out, 3, stride, 1, bias=False),
            nn.BatchNorm2d(out),
            nn.ReLU(),
            nn.Conv2d(out, out, 3, 1, 1, bias=False),
            nn.BatchNorm2d(out),
        )
        self.shortcut = nn.Sequential(
            nn.Conv2d(into, out, 1, stride, bias=False), nn.BatchNorm2d(out)
        )

    def forward(self, x: Tensor) -> Tensor:
        """The activated sum of shortcut and convolutions."""
        return torch.relu(self.body(x) + self.shortcut(x))


def resnet() -> nn.Module:
    """A small ResNet: a stem with pooling, two stages, global average pooling."""
    return nn.Sequential(
        nn.Conv2d(3, 8, 7, 2, 3, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
        Residual(8, 8, 1),
        Residual(8, 16, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, CLASSES),
    )


class InvertedResidual(nn.Module):
    """Expansion, depthwise convolution, squeeze and excitation, projection (MobileNetV3)."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.expand = nn.Sequential(
            nn.Conv2d(width, inner, 1), nn.BatchNorm2d(inner), nn.Hardswish()
        )
        self.depthwise = nn.Sequential(
            nn.Conv2d(inner, inner, 5, 1, 2, groups=inner), nn.BatchNorm2d(inner), nn.ReLU6()
        )
        self.squeeze = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(inner, 4, 1),
            nn.ReLU(),
            nn.Conv2d(4, inner, 1),
            nn.Hardsigmoid(),
        )
        self.project = nn.Sequential(nn.Conv2d(inner, width, 1), nn.BatchNorm2d(width))

    def forward(self, x: Tensor) -> Tensor:
        """The input plus the block's output."""
        inner = self.depthwise(self.expand(x))
        return x + self.project(inner * self.squeeze(inner))


def mobilenet() -> nn.Module:
    """A small MobileNet: a stem, two inverted residuals, a classifier."""
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, 2, 1),
        nn.Hardswish(),
        InvertedResidual(8, 24),
        InvertedResidual(8, 24),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, CLASSES),
    )


class Unet(nn.Module):
    """A contracting and an expanding path with a skip connection; pixel scores are averaged."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.SiLU())
        self.down = nn.Sequential(
            nn.AvgPool2d(2), nn.Conv2d(8, 12, 3, padding=1), nn.LeakyReLU(0.1)
        )
        self.up = nn.ConvTranspose2d(12, 8, 2, 2)
        self.smooth = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)
        self.last = nn.Conv2d(28, CLASSES, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        """Class scores, averaged over the pixels of the image."""
        first = self.first(x)
        down = self.down(first)
        joined = torch.cat([first, self.up(down), self.smooth(down)], dim=1)
        return self.last(joined).mean(dim=(2, 3))


class Recurrent(nn.Module):
    """Embedding, recurrent layers, and a readout at each step or at the last step."""

    def __init__(self, layer: type[nn.RNNBase], every_step: bool, both_ways: bool) -> None:
        super().__init__()
        self.embedding = nn.Embedding(_TOKENS, _WIDTH)
        self.recurrent = layer(_WIDTH, 12, 2, batch_first=True, bidirectional=both_ways)
        self.every_step = every_step
        self.readout = nn.Linear(24 if both_ways else 12, _TOKENS if every_step else CLASSES)

    def forward(self, tokens: Tensor) -> Tensor:
        """Scores of the next token at each step, or of the sequence's class."""
        states, _ = self.recurrent(self.embedding(tokens))
        return self.readout(states if self.every_step else states[:, -1])


class Encoder(nn.Module):
    """Embeddings with positions, transformer encoder layers, and the mean over time."""

    def __init__(self, norm_first: bool, activation: str) -> None:
        super().__init__()
        self.embedding = nn.Embedding(_TOKENS, _WIDTH)
        self.positions = nn.Parameter(torch.randn(_LENGTH, _WIDTH) * 0.1)
        layer = nn.TransformerEncoderLayer(
            _WIDTH, 4, 32, 0.0, activation, batch_first=True, norm_first=norm_first
        )
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.readout = nn.Linear(_WIDTH, CLASSES)

    def forward(self, tokens: Tensor) -> Tensor:
        """Class scores."""
        return self.readout(self.layers(self.embedding(tokens) + self.positions).mean(dim=1))


class Scores(nn.Module):
    """A wrapper of a transformers model that returns only the scores."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: Tensor) -> Tensor:
        """The field ``logits`` of the model's result."""
        return self.model(batch, return_dict=True).logits


def bert(attention: str) -> nn.Module:
    """BERT with a classifier."""
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(
        vocab_size=_TOKENS,
        hidden_size=_WIDTH,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=32,
        max_position_embeddings=_LENGTH,
        num_labels=CLASSES,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        attn_implementation=attention,
    )
    return Scores(BertForSequenceClassification(config))


def gpt2(attention: str) -> nn.Module:
    """GPT-2 with its language-model head, tied to the embedding."""
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=_TOKENS,
        n_positions=_LENGTH,
        n_embd=_WIDTH,
        n_layer=2,
        n_head=4,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        resid_pdrop=0.0,
        use_cache=False,
        attn_implementation=attention,
    )
    return Scores(GPT2LMHeadModel(config))


def vit(attention: str) -> nn.Module:
    """A vision transformer with a classifier."""
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(
        image_size=16,
        patch_size=4,
        hidden_size=_WIDTH,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=32,
        num_labels=CLASSES,
        attn_implementation=attention,
    )
    return Scores(ViTForImageClassification(config))


_IMAGE, _TEXT = (BATCH, 3, 16, 16), (BATCH, _LENGTH)
ARCHITECTURES = (
    Architecture("resnet", resnet, (BATCH, 3, 32, 32)),
    Architecture("mobilenet", mobilenet, _IMAGE),
    Architecture("unet", Unet, _IMAGE),
    Architecture("lstm-lm", lambda: Recurrent(nn.LSTM, True, False), _TEXT, _TOKENS),
    Architecture("lstm-both-ways", lambda: Recurrent(nn.LSTM, False, True), _TEXT, _TOKENS),
    Architecture("gru-both-ways", lambda: Recurrent(nn.GRU, False, True), _TEXT, _TOKENS),
    Architecture("rnn", lambda: Recurrent(nn.RNN, False, False), _TEXT, _TOKENS),
    Architecture("encoder-pre-gelu", lambda: Encoder(True, "gelu"), _TEXT, _TOKENS),
    Architecture("encoder-post-relu", lambda: Encoder(False, "relu"), _TEXT, _TOKENS),
    *(
        Architecture(
            f"{build.__name__}-{attention}", lambda b=build, a=attention: b(a), shape, reads_tokens
        )
        for build, shape, reads_tokens in (
            (bert, _TEXT, _TOKENS),
            (gpt2, _TEXT, _TOKENS),
            (vit, _IMAGE, None),
        )
        for attention in ("eager", "sdpa")
    ),
)
