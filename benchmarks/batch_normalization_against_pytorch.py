# /// script
# requires-python = ">=3.11"
# dependencies = ["numpy>=2", "torch==2.13.0"]
# ///
"""Write runner/onnxstep/tests/golden/batch_normalization.json: PyTorch's training in float64.

A convolution and a dense layer, each followed by batch normalization, take 20 steps of SGD on one
batch. First values and data come from NumPy's generator, so that the test can draw the same
numbers.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from pathlib import Path

import numpy as np
import torch
from torch import nn

GOLDEN = Path(__file__).parents[1] / "runner/onnxstep/tests/golden" / "batch_normalization.json"
STEPS, RATE = 20, 0.2


def main() -> None:
    """Train, then write the losses, the running statistics and the loss in evaluation."""
    network = nn.Sequential(
        OrderedDict(
            conv=nn.Conv2d(2, 3, 3),
            norm1=nn.BatchNorm2d(3),
            relu1=nn.ReLU(),
            flat=nn.Flatten(),
            dense1=nn.Linear(27, 5),
            norm2=nn.BatchNorm1d(5, eps=1e-3, momentum=0.3),
            relu2=nn.ReLU(),
            dense2=nn.Linear(5, 3),
        )
    ).double()
    rng = np.random.default_rng(0)
    for _, value in sorted(network.state_dict().items()):
        if value.is_floating_point():
            value.copy_(torch.from_numpy(rng.uniform(0.1, 0.6, value.shape)))
    x = torch.from_numpy(rng.standard_normal((6, 2, 5, 5)))
    target = torch.from_numpy(rng.integers(0, 3, 6))
    optimizer = torch.optim.SGD(network.parameters(), lr=RATE)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(network(x), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    evaluated = nn.functional.cross_entropy(network.eval()(x), target).item()
    running = {
        k.replace(".", "_"): v.tolist() for k, v in network.named_buffers() if v.is_floating_point()
    }
    golden = {"rate": RATE, "losses": losses, "evaluated": evaluated, "running": running}
    GOLDEN.write_text(json.dumps(golden, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
