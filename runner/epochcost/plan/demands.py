"""Demands of a study that go together on no machine, or not with the GPUs of this one. Pure."""

from __future__ import annotations

from epochcost.plan.load import Load
from epochcost.specs.study import Provider, Study


def unmet(study: Study, provider: Provider, load: Load | None, gpus: int | None) -> str | None:
    """Why this is not done; None where it is. ``gpus``: how many CUDA shows, None: not known."""
    if load is not None and study.input_copy == "excluded":
        return "under LoadGen the copy of a request is part of its latency: it cannot be excluded"
    if provider != "cuda":
        return None
    if load is not None and study.cuda.graphs:
        return "a CUDA graph is of one batch size; under LoadGen batches are of many"
    if gpus is not None and study.cuda.device >= gpus:
        return f"needs GPU {study.cuda.device}; CUDA shows {gpus} here, counted from 0"
    return None
