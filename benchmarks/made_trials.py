"""Trials for benchmarks with synthetic results: the trials' hashes are of no graph or spec."""

from __future__ import annotations

from decimal import Decimal

from epochcost.plan.trial import Trial


def made_trial(model: str, batch_size: int, runtime: str) -> Trial:
    """A trial on the CPU, as in a study: training of a model at a batch size."""
    return Trial(
        model=model,
        mode="training",
        provider="cpu",
        batch_size=batch_size,
        seed=0,
        runtime=runtime,
        producer="0.1.0",
        graph_sha256="a" * 64,
        spec_sha256="b" * 64,
        relative_half_width=Decimal("0.02"),
        minimum_samples=30,
        budget_seconds=Decimal(20),
    )
