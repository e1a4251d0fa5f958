"""The graph, adapters and texts of a LoRA step, equal for epochcost and PyTorch in ``lora``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx

from epochcost.execute.requests import with_all_positions
from onnxstep import load_model, with_adapters

ROOT = Path(__file__).parents[1]
RANK, ALPHA, TARGETS = 8, 16.0, ("layers.*",)
RATE, DECAY, VOCABULARY, POOL = 1e-4, 0.01, 49152, 8


def decoder(method: str) -> onnx.ModelProto:
    """The catalogue's graph with scores of all positions, plus adapters unless fully trained."""
    graph = load_model(ROOT / "models" / "smollm2_135m.onnx")
    graph = with_all_positions(graph)
    return graph if method == "full" else with_adapters(graph, RANK, ALPHA, TARGETS)


def texts(tokens: int) -> np.ndarray:
    """Batches [pool, 1, tokens + 1] of random tokens."""
    return np.random.default_rng(0).integers(0, VOCABULARY, (POOL, 1, tokens + 1))
