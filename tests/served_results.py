"""What LoadGen might have left behind, for tests that only read it."""

from __future__ import annotations

from decimal import Decimal

from epochcost.plan.trial import Load
from epochcost.results.records import Result
from epochcost.results.served import Latency, LoadGenRun, ServingRecord, latency_percentile

SERVER = Load(
    scenario="server",
    server_latency_ms=Decimal(15),
    latency_percentile=Decimal("0.99"),
    maximum_delay_ms=Decimal(1),
)
LATENCIES = tuple(1_000_000 * number for number in range(1, 101))


def run(purpose: str = "scored", *, kept_bound: bool | None = True) -> LoadGenRun:
    """A run with the statistics of ``LATENCIES`` at 500 samples per second."""
    p50, p90, p99 = (latency_percentile(LATENCIES, share) for share in (0.5, 0.9, 0.99))
    latency = Latency(
        minimum_nanoseconds=LATENCIES[0],
        mean_nanoseconds=sum(LATENCIES) // len(LATENCIES),
        p50_nanoseconds=p50,
        p90_nanoseconds=p90,
        p99_nanoseconds=p99,
        maximum_nanoseconds=LATENCIES[-1],
    )
    return LoadGenRun(
        purpose=purpose,  # type: ignore[arg-type]
        asked_samples_per_second=None if kept_bound is None else 500,
        samples_per_second=500,
        queries=100,
        samples=100,
        minimum_seconds=0.2,
        valid=True,
        kept_bound=kept_bound,
        latency=latency,
        summary="MLPerf Results Summary",
    )


def served(*, kept: bool = True) -> ServingRecord:
    """A server that keeps its bound, or that does not at any rate."""
    runs = (run("search", kept_bound=kept), *([run()] if kept else []))
    return ServingRecord(
        loadgen="6.0.17",
        runs=runs,
        reported=1 if kept else None,
        latencies_nanoseconds=LATENCIES if kept else (),
        detail_log="",
    )


def under_load(result: Result, *, kept: bool = True, load: Load = SERVER) -> Result:
    """The same result, measured by LoadGen."""
    trial = result.trial.model_copy(update={"mode": "inference", "load": load})
    measurement = result.measurement.model_copy(
        update={"samples_seconds": (), "stop_reason": "loadgen", "served": served(kept=kept)}
    )
    return result.model_copy(
        update={"trial": trial, "trial_id": trial.id, "measurement": measurement}
    )
