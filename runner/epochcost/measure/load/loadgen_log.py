"""What LoadGen wrote: its detail log as values, its summary, and latencies from its trace.

LoadGen logs a line ``:::MLLOG {json}`` for each value; a trace has an event for each sample, whose
``complete_ns`` counts from when the sample was scheduled (mlcommons/inference, loadgen/logging.cc).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epochcost.measure.failures import TrialFailed
from epochcost.results.served import Latency, LoadGenRun, Purpose

_MARK = ":::MLLOG "
_SAMPLE = re.compile(rb'"query_seq":(\d+),.*?"complete_ns":(\d+)')


@dataclass(frozen=True)
class Logged:
    """One run's words; ``latencies`` are of queries in multi-stream, else of samples, or none."""

    values: dict[str, Any]
    summary: str
    detail: bytes
    latencies: tuple[int, ...]

    @property
    def lasted(self) -> bool:
        """Whether the run was as long as it was asked to be."""
        return bool(self.values.get("result_min_duration_met"))

    @property
    def kept_bound(self) -> bool:
        """Whether the percentile was within the bound of the scenario server."""
        return bool(self.values.get("result_perf_constraints_met"))

    @property
    def valid(self) -> bool:
        """LoadGen's verdict."""
        return self.values.get("result_validity") == "VALID"


def read_logs(folder: Path, prefix: str, *, by_query: bool) -> Logged:
    """Read and remove what LoadGen left in ``folder``; ``by_query`` takes latencies of queries.

    Raises TrialFailed where LoadGen left no result.
    """
    try:
        detail = (folder / f"{prefix}detail.txt").read_bytes()
        summary = (folder / f"{prefix}summary.txt").read_text(encoding="utf-8")
        trace = (folder / f"{prefix}trace.json").read_bytes()
    except OSError as error:
        raise TrialFailed(f"LoadGen: demanded its log files; got {error}") from None
    for path in folder.glob(f"{prefix}*"):
        path.unlink()
    values = _values(detail.decode("utf-8", "replace"))
    if "result_validity" not in values:
        raise TrialFailed("LoadGen: demanded a result in its log; it ended without one")
    return Logged(values, summary, detail, _latencies(trace, by_query))


def loadgen_run(
    logged: Logged, purpose: Purpose, minimum_seconds: float, asked: float | None, per_query: int
) -> LoadGenRun:
    """One run as it is stored; ``asked`` is a server's rate, ``per_query`` the samples of one."""
    values = logged.values
    return LoadGenRun(
        purpose=purpose,
        asked_samples_per_second=asked,
        samples_per_second=_rate(values, per_query),
        queries=values["result_query_count"],
        samples=values["result_query_count"] * values["generated_samples_per_query"],
        minimum_seconds=minimum_seconds,
        valid=logged.valid,
        kept_bound=None if asked is None else logged.kept_bound,
        latency=_latency(values),
        summary=logged.summary,
    )


def _rate(values: dict[str, Any], per_query: int) -> float:
    """Samples per second; LoadGen counts a stream's in queries, its own time between them too."""
    for key in ("result_samples_per_second", "result_completed_samples_per_sec"):
        if key in values:
            return float(values[key])
    if "result_qps_with_loadgen_overhead" in values:
        return float(values["result_qps_with_loadgen_overhead"])
    return per_query * 1e9 / float(values["result_mean_query_latency_ns"])


def _latency(values: dict[str, Any]) -> Latency:
    streams = "result_mean_query_latency_ns" in values
    of, per = ("query_", "per_query_") if streams else ("", "")
    return Latency(
        minimum_nanoseconds=values[f"result_min_{of}latency_ns"],
        mean_nanoseconds=values[f"result_mean_{of}latency_ns"],
        p50_nanoseconds=values[f"result_50.00_percentile_{per}latency_ns"],
        p90_nanoseconds=values[f"result_90.00_percentile_{per}latency_ns"],
        p99_nanoseconds=values[f"result_99.00_percentile_{per}latency_ns"],
        maximum_nanoseconds=values[f"result_max_{of}latency_ns"],
    )


def _values(detail: str) -> dict[str, Any]:
    """By key the last value logged."""
    lines = (line.removeprefix(_MARK) for line in detail.splitlines() if line.startswith(_MARK))
    entries = (json.loads(line) for line in lines)
    return {entry["key"]: entry["value"] for entry in entries}


def _latencies(trace: bytes, by_query: bool) -> tuple[int, ...]:
    """Of every sample, or of every query: that of its last sample."""
    found = [(int(query), int(latency)) for query, latency in _SAMPLE.findall(trace)]
    if not by_query:
        return tuple(latency for _, latency in found)
    slowest: dict[int, int] = {}
    for query, latency in found:
        slowest[query] = max(latency, slowest.get(query, 0))
    return tuple(slowest.values())
