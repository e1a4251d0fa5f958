"""Made-up records of LoadGen's runs, for tests that only read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from epochcost.plan.work import Load, Requests
from epochcost.results.records import Result
from epochcost.results.served import (
    Latency,
    LoadGenRun,
    ServingRecord,
    TokenRun,
    latency_percentile,
)
from epochcost.specs.requests import Lengths

SERVER = Load(
    scenario="server",
    server_latency_ms=Decimal(15),
    latency_percentile=Decimal("0.99"),
    maximum_delay_ms=Decimal(1),
)
LATENCIES = tuple(1_000_000 * number for number in range(1, 101))


def latency_of(latencies: Sequence[int]) -> Latency:
    """LoadGen's statistics of latencies in ascending order."""
    p50, p90, p99 = (latency_percentile(latencies, share) for share in (0.5, 0.9, 0.99))
    return Latency(
        minimum_nanoseconds=latencies[0],
        mean_nanoseconds=sum(latencies) // len(latencies),
        p50_nanoseconds=p50,
        p90_nanoseconds=p90,
        p99_nanoseconds=p99,
        maximum_nanoseconds=latencies[-1],
    )


def run(purpose: str = "scored", *, kept_bound: bool | None = True) -> LoadGenRun:
    """A run with the statistics of ``LATENCIES`` at 500 samples per second."""
    return LoadGenRun(
        purpose=purpose,  # type: ignore[arg-type]
        asked_samples_per_second=None if kept_bound is None else 500,
        samples_per_second=500,
        queries=100,
        samples=100,
        minimum_seconds=0.2,
        valid=True,
        kept_bound=kept_bound,
        latency=latency_of(LATENCIES),
        summary="MLPerf Results Summary",
    )


def served(*, kept: bool = True) -> ServingRecord:
    """A record of a server that keeps its bound, or that does not at any rate."""
    runs = (run("search", kept_bound=kept), *([run()] if kept else []))
    return ServingRecord(
        loadgen="6.0.17",
        runs=runs,
        reported=1 if kept else None,
        latencies_nanoseconds=LATENCIES if kept else (),
        detail_log="",
    )


def under_load(result: Result, *, kept: bool = True, load: Load = SERVER) -> Result:
    """The same result as if LoadGen had measured it."""
    trial = result.trial.model_copy(update={"mode": "inference", "work": load})
    measurement = result.measurement.model_copy(
        update={"samples_seconds": (), "stop_reason": "loadgen", "served": served(kept=kept)}
    )
    return result.model_copy(
        update={"trial": trial, "trial_id": trial.id, "measurement": measurement}
    )


ASKED = Requests(
    prompt=Lengths(tokens=(30,)),
    answer=Lengths(tokens=(20,)),
    first_token_ms=80,
    token_ms=200,
    load_percents=(50, 100),
)


def token_run(rate: float, slower: float, purpose: str) -> LoadGenRun:
    """A run of a hundred requests; first tokens take ``slower`` times ``LATENCIES``.

    The requests are answered at ``rate``, and were planned at 0.9 of it.
    """
    first = tuple(round(one * slower) for one in LATENCIES)
    tokens = TokenRun(
        first=latency_of(first),
        further=latency_of(LATENCIES),
        read=3000,
        written=2000,
        first_nanoseconds=first,
        further_nanoseconds=LATENCIES,
    )
    rates = {"asked_samples_per_second": 0.9 * rate, "samples_per_second": rate}
    return run(purpose).model_copy(update={"tokens": tokens, **rates})


def behind_an_engine(
    result: Result, slower: Mapping[float, float], asked: Requests = ASKED
) -> Result:
    """The same result as if an engine had served these rates.

    The highest rate kept its bound; without rates none did.
    """
    rates = sorted(slower)
    runs = [token_run(rates[-1], slower[rates[-1]], "scored")] if rates else [run("search")]
    runs += [token_run(rate, slower[rate], "share") for rate in rates[:-1]]
    record = ServingRecord(
        loadgen="6.0.17",
        runs=tuple(runs),
        reported=0 if rates else None,
        detail_log="",
        start_seconds=1.5,
    )
    fields = {"work": asked, "batch_size": 4}
    trial = result.trial.model_copy(update=fields)
    measurement = result.measurement.model_copy(
        update={"samples_seconds": (), "stop_reason": "loadgen", "served": record}
    )
    return result.model_copy(
        update={"trial": trial, "trial_id": trial.id, "measurement": measurement}
    )
