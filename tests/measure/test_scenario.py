"""The real LoadGen drives a small model in the worker, and its summary agrees with the records."""

from __future__ import annotations

import base64
import gzip
import re
import signal
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import psutil
import pytest

from epochcost.errors import CapabilityError
from epochcost.measure.job import Progress, SamplingRule, TrialFailed
from epochcost.measure.loadgen import LoadGenRequest, missing_loadgen, run_loadgen
from epochcost.measure.scenario import answering_at_once, answering_from_queue
from epochcost.measure.trial import run_trial
from epochcost.plan.work import Load
from epochcost.results.records import Measurement
from epochcost.results.served import LoadGenRun, latency_percentile
from serving_jobs import MakeServingJob

pytest.importorskip("mlperf_loadgen", reason="LoadGen is not built for this machine")


SERVER = Load(
    scenario="server",
    server_latency_ms=Decimal(100),
    latency_percentile=Decimal("0.99"),
    maximum_delay_ms=Decimal("0.1"),
)


HOPELESS = SERVER.model_copy(update={"server_latency_ms": Decimal("0.000001")})


# How LoadGen heads the percentiles in its summary.
PERCENTILES = {"50.00": 0.5, "90.00": 0.9, "95.00": 0.95, "97.00": 0.97, "99.00": 0.99}


def ignore(_: Progress) -> None:
    """Do nothing with the progress."""


def said(run: LoadGenRun, label: str) -> str:
    """The text after a label in LoadGen's summary."""
    (found,) = re.findall(rf"^ *{re.escape(label)} *: *(.+?) *$", run.summary, re.MULTILINE)
    return str(found)


def measured(make: MakeServingJob, folder: Path, load: Load, **fields: Any) -> Measurement:
    """Run a trial in a separate worker."""
    return run_trial(make(load, **fields), folder, ignore)


def require_equal_words(measurement: Measurement, scenario: str) -> LoadGenRun:
    """Require that raw latencies give LoadGen's percentiles; returns the scored run."""
    served = measurement.served
    assert served is not None
    run = served.run
    assert run is not None
    assert said(run, "Scenario") == scenario
    ordered = sorted(served.latencies_nanoseconds)
    for words, share in PERCENTILES.items():
        stated = int(said(run, f"{words} percentile latency (ns)"))
        assert latency_percentile(ordered, share) == stated
    assert ordered[0] == int(said(run, "Min latency (ns)"))
    assert ordered[-1] == int(said(run, "Max latency (ns)"))
    assert sum(ordered) // len(ordered) == int(said(run, "Mean latency (ns)"))
    return run


def test_offline(serving_job: MakeServingJob, tmp_path: Path) -> None:
    """Offline has one query with all samples, after a run that measures the capacity."""
    sampling = SamplingRule(minimum_samples=10, budget_seconds=0.05)
    measurement = measured(serving_job, tmp_path, Load(scenario="offline"), sampling=sampling)
    run = require_equal_words(measurement, "Offline")
    served = measurement.served
    assert served is not None
    assert served.runs[0].purpose == "capacity"
    assert run.purpose == "scored"
    assert run.queries == 1
    assert len(served.latencies_nanoseconds) == run.samples
    assert measurement.stop_reason == "loadgen"
    assert measurement.samples_seconds == ()
    assert measurement.steps_taken >= run.samples / 8
    assert run.samples_per_second == pytest.approx(float(said(run, "Samples per second")), 1e-4)


def test_server(serving_job: MakeServingJob, tmp_path: Path) -> None:
    """In Server every run is stored with its verdict on the bound, and the last one counts."""
    # So brief that a fast machine keeps the latencies too.
    sampling = SamplingRule(minimum_samples=10, budget_seconds=0.1)
    measurement = measured(serving_job, tmp_path, SERVER, sampling=sampling)
    served = measurement.served
    assert served is not None
    purposes = [run.purpose for run in served.runs]
    assert purposes[0] == "capacity"
    assert purposes == sorted(purposes, key=["capacity", "search", "scored"].index)
    bound = 100_000_000
    for run in served.runs[1:]:
        assert said(run, "target_latency (ns)") == str(bound)
        assert run.kept_bound == (run.latency.p99_nanoseconds <= bound)
    if served.run is not None:  # a machine that is busy enough keeps no bound at any rate
        require_equal_words(measurement, "Server")
        assert served.run is served.runs[-1]
        assert served.run.kept_bound
        kept = [r.asked_samples_per_second for r in served.runs if r.kept_bound]
        assert served.run.asked_samples_per_second in kept


def test_loadgens_log_is_kept(serving_job: MakeServingJob, tmp_path: Path) -> None:
    """LoadGen's complete detail log is in the measurement, and no file of it is left."""
    measurement = measured(serving_job, tmp_path, Load(scenario="offline"))
    assert measurement.served is not None
    log = gzip.decompress(base64.b64decode(measurement.served.detail_log)).decode()
    assert '"key": "result_validity"' in log
    assert measurement.served.loadgen in log.splitlines()[0]
    assert not list(tmp_path.glob("loadgen-*"))


def test_a_bound_that_cannot_be_kept_is_a_state(
    serving_job: MakeServingJob, tmp_path: Path
) -> None:
    """If no rate keeps the bound, no run counts and the trial does not fail."""
    served = measured(serving_job, tmp_path, HOPELESS).served
    assert served is not None
    assert served.reported is None
    assert served.run is None
    assert served.latencies_nanoseconds == ()
    assert [(run.purpose, run.kept_bound) for run in served.runs] == [("search", False)]


def test_a_worker_killed_in_mid_scenario_is_a_failed_trial(
    serving_job: MakeServingJob, tmp_path: Path
) -> None:
    """LoadGen ends with its worker, and the error names the signal."""

    def kill(progress: Progress) -> None:
        if progress.phase == "sampling" and progress.samples:
            (worker,) = (
                child
                for child in psutil.Process().children()
                if "epochcost.measure.worker" in child.cmdline()
            )
            worker.send_signal(signal.SIGKILL)

    endless = SamplingRule(minimum_samples=10, budget_seconds=60)
    job = serving_job(Load(scenario="offline"), sampling=endless)
    with pytest.raises(TrialFailed, match="killed by SIGKILL"):
        run_trial(job, tmp_path, kill)


@pytest.mark.parametrize("scenario", ["offline", "server"])
def test_a_fault_of_the_model_ends_the_scenario_with_its_reason(
    scenario: str, tmp_path: Path
) -> None:
    """An error of the model is raised after the run, outside LoadGen's threads."""

    def answer(indices: object) -> None:
        raise CapabilityError(f"out of memory at {indices}")

    asked = LoadGenRequest(
        scenario=scenario,  # type: ignore[arg-type]
        minimum_seconds=0.1,
        minimum_queries=10,
        queries_per_second=1000,
        examples=8,
        bound_seconds=1.0,
    )
    answering = (
        answering_from_queue(answer, 4, 0.0, lambda _: None)
        if scenario == "server"
        else answering_at_once(answer, 4, lambda _: None)
    )
    with pytest.raises(CapabilityError, match="out of memory"), answering as issue:
        run_loadgen(asked, issue, tmp_path)


def test_without_loadgen_the_package_to_install_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without LoadGen the message names the package, before planning and in the worker."""
    assert missing_loadgen() is None
    monkeypatch.setitem(sys.modules, "mlperf_loadgen", None)
    assert "pip install mlcommons-loadgen" in str(missing_loadgen())
    asked = LoadGenRequest("offline", 0.1, 1, 10, 1)
    with pytest.raises(CapabilityError, match="mlcommons-loadgen is not installed"):
        run_loadgen(asked, lambda _: None, tmp_path)
