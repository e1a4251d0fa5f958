"""The words for what LoadGen measured, where steps have a mean and a width."""

from __future__ import annotations

from epochcost.plan.trial import Trial
from epochcost.results.served import Served
from epochcost.units import seconds


def served_words(trial: Trial, served: Served) -> str:
    """Latency and rate in one line."""
    run = served.run
    if run is None:
        count = len(served.runs)
        return f"no rate {bound_words(trial)}, {count} run{'s' * (count > 1)} of LoadGen"
    latency = run.latency
    p50, p99 = (seconds(at / 1e9) for at in (latency.p50_nanoseconds, latency.p99_nanoseconds))
    kept = "" if run.kept_bound is None else f" {bound_words(trial)}"
    return f"{run.samples_per_second:,.0f} samples/s{kept}, latency {p50} (p99 {p99})"


def served_cells(served: Served) -> tuple[str, ...]:
    """Mean latency, no interval, rate, queries and p99, as the table of a run has columns."""
    run = served.run
    if run is None:
        return ("-", "-", "-", str(len(served.runs)), "no rate keeps the bound")
    latency = run.latency
    return (
        seconds(latency.mean_nanoseconds / 1e9),
        "-",
        f"{run.samples_per_second:,.0f}",
        str(run.samples),
        f"p99 {seconds(latency.p99_nanoseconds / 1e9)}",
    )


def bound_words(trial: Trial) -> str:
    """The bound of a server's trial."""
    assert trial.load is not None, "only trials under load have a bound"
    bound_seconds = float(trial.load.server_latency_ms or 0) / 1e3
    share = float(trial.load.latency_percentile or 0)
    return f"keeps {share:.4g} of answers within {seconds(bound_seconds)}"
