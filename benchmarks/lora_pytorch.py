"""SmolLM2 135M in PyTorch with the weights and adapters of the catalogue's graph.

The arithmetic is the published model's, with adapters as in ``peft``: y = x W + (x A) B · alpha /
rank.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from lora_work import ALPHA, DECAY, RANK, RATE, decoder, texts
from torch import nn

from onnxstep.graphs.parameters import materialise

LAYERS, WIDTH, HEADS, SHARED, SIZE, THETA, EPSILON = 30, 576, 9, 3, 64, 100_000.0, 1e-5
functional = nn.functional


class Product(nn.Module):
    """A linear layer and its adapter, if it has one."""

    def __init__(self, name: str, values: dict[str, torch.Tensor], *, trained: bool) -> None:
        super().__init__()
        weight = values[f"{name}.weight"].T.contiguous()
        self.weight = nn.Parameter(weight, requires_grad=trained)
        adapted = f"{name}.weight.lora_A" in values
        self.a, self.b = (
            nn.Parameter(values[f"{name}.weight.lora_{part}"]) if adapted else None for part in "AB"
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The layer's product, plus the adapter's product."""
        y = functional.linear(x, self.weight)
        return y if self.a is None else y + (x @ self.a) @ self.b * (ALPHA / RANK)


class Layer(nn.Module):
    """Attention, then the gated network. Each reads the normalised residual and adds to it."""

    def __init__(self, name: str, values: dict[str, torch.Tensor], *, trained: bool) -> None:
        super().__init__()
        for part in ("qkv", "out", "mlp.gate", "mlp.up", "mlp.down"):
            product = Product(f"{name}.{part}", values, trained=trained)
            setattr(self, part.removeprefix("mlp."), product)
        gains = (values[f"{name}.{part}_norm.weight"] for part in ("attention", "mlp"))
        self.attention_gain, self.mlp_gain = (nn.Parameter(g, requires_grad=trained) for g in gains)

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        """The residual [1, tokens, width] after the layer."""
        batch, length, _ = x.shape
        qkv = self.qkv(functional.rms_norm(x, (WIDTH,), self.attention_gain, EPSILON))
        parts = qkv.split([HEADS * SIZE, SHARED * SIZE, SHARED * SIZE], dim=-1)
        q, k, v = (part.view(batch, length, -1, SIZE).transpose(1, 2) for part in parts)
        y = functional.scaled_dot_product_attention(
            turned(q, cos, sin), turned(k, cos, sin), v, is_causal=True, enable_gqa=True
        )
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, WIDTH))
        inner = functional.rms_norm(x, (WIDTH,), self.mlp_gain, EPSILON)
        return x + self.down(functional.silu(self.gate(inner)) * self.up(inner))


def turned(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Queries or keys, rotated by their positions. The halves of a head form the pairs."""
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1) * sin


class Decoder(nn.Module):
    """Scores of the next token at each position; the head has the embeddings as weights."""

    def __init__(self, values: dict[str, torch.Tensor], tokens: int, *, trained: bool) -> None:
        super().__init__()
        self.embedding = nn.Parameter(values["embed.weight"], requires_grad=trained)
        self.gain = nn.Parameter(values["norm.weight"], requires_grad=trained)
        layers = [Layer(f"layers.{n}", values, trained=trained) for n in range(LAYERS)]
        self.layers = nn.ModuleList(layers)
        rates = THETA ** (-np.arange(0, SIZE, 2) / SIZE)
        angles = np.tile(np.outer(np.arange(tokens), rates), 2)
        self.cos, self.sin = (torch.from_numpy(f(angles)).float() for f in (np.cos, np.sin))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Scores [1, tokens, vocabulary] of the tokens [1, tokens]."""
        x = functional.embedding(tokens, self.embedding)
        for layer in self.layers:
            x = layer(x, self.cos, self.sin)
        return functional.linear(
            functional.rms_norm(x, (WIDTH,), self.gain, EPSILON), self.embedding
        )


class PyTorch:
    """Steps of AdamW in eager mode, as ``lora.Ours`` takes them."""

    def __init__(self, method: str, tokens: int, threads: int) -> None:
        torch.set_num_threads(threads)
        values = {n: torch.from_numpy(v) for n, v in materialise(decoder(method)).items()}
        self._module = Decoder(values, tokens, trained=method == "full")
        trained = [p for p in self._module.parameters() if p.requires_grad]
        self._optimizer = torch.optim.AdamW(trained, lr=RATE, weight_decay=DECAY)
        self._texts = [torch.from_numpy(text) for text in texts(tokens)]
        self._count = 0

    def __call__(self) -> float:
        """Take a step and return its loss."""
        text = self._texts[self._count % len(self._texts)]
        self._count += 1
        self._optimizer.zero_grad()
        scores = self._module(text[:, :-1])
        loss = functional.cross_entropy(scores.flatten(0, 1), text[:, 1:].flatten())
        loss.backward()
        self._optimizer.step()
        assert math.isfinite(loss.item())
        return loss.item()
