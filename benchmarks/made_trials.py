"""Trials of no study, for benchmarks: their hash of a spec, and of a missing graph, is made up."""

from __future__ import annotations

import hashlib
from decimal import Decimal
from pathlib import Path
from typing import Any

from epochcost.plan.trial import Trial


def made_trial(
    model: str, batch_size: int, runtime: str, graph: Path | None = None, **settings: Any
) -> Trial:
    """A trial on the CPU, as in a study: training of a model at a batch size.

    ``settings`` are other fields of the trial.
    """
    fields: dict[str, Any] = {
        "mode": "training",
        "provider": "cpu",
        "seed": 0,
        "producer": "0.1.0",
        "graph_sha256": hashlib.sha256(graph.read_bytes()).hexdigest() if graph else "a" * 64,
        "spec_sha256": "b" * 64,
        "relative_half_width": Decimal("0.02"),
        "minimum_samples": 30,
        "budget_seconds": Decimal(20),
    }
    return Trial(model=model, batch_size=batch_size, runtime=runtime, **{**fields, **settings})
