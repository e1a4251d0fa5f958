"""Run MLPerf's LoadGen, a library that sends queries; only this module imports LoadGen.

LoadGen's log has lines ``:::MLLOG {json}``. In its trace, the ``complete_ns`` of a sample counts
from the scheduled time (mlcommons/inference, loadgen/logging.cc).
"""

from __future__ import annotations

import base64
import gzip
import importlib.metadata
import importlib.util
import json
import math
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from epochcost.errors import CapabilityError
from epochcost.measure.job import Job, TrialFailed
from epochcost.measure.sampling import PacedReport, Report
from epochcost.plan.work import LoadScenario
from epochcost.results.served import Latency, LoadGenRun, Purpose, ServingRecord
from epochcost.specs.study import MOST_SAMPLES

_MODULE = "mlperf_loadgen"
_PREFIX = "loadgen-"
# The seeds of every scenario in mlcommons/inference, loadgen/mlperf.conf, revision 001712e9: the
# same arrivals and the same choice of examples on every machine.
_SEEDS = {
    "qsl_rng_seed": 1780908523862526354,
    "sample_index_rng_seed": 14771362308971278857,
    "schedule_rng_seed": 18209322760996052031,
}


class Sample(Protocol):
    """A sample in a query: ``index`` is the example's number, and answers name the ``id``."""

    id: int
    index: int


Issue = Callable[[Sequence[Sample]], None]
# A function that receives the number of answered samples.
Answered = Callable[[int], None]


@dataclass(frozen=True)
class LoadGenRequest:
    """Settings for a run of LoadGen.

    ``bound_seconds`` limits the latency at ``percentile``, a share below 1. If
    ``token_bound_seconds`` limits the time per further token, ``bound_seconds`` limits the time to
    the first token. ``trace`` logs every sample.
    """

    scenario: LoadScenario
    minimum_seconds: float
    minimum_queries: int
    queries_per_second: float
    examples: int
    bound_seconds: float = 0.0
    token_bound_seconds: float | None = None
    percentile: float = 0.99
    trace: bool = False


def missing_loadgen() -> str | None:
    """The reason why LoadGen cannot be used here; None if LoadGen works."""
    if importlib.util.find_spec(_MODULE) is not None:
        return None
    return (
        "MLPerf's scenarios demand LoadGen; the package mlcommons-loadgen is not installed: "
        "`pip install mlcommons-loadgen` where it is built (Linux on x86-64, macOS on Arm, "
        "Python up to 3.13), or leave out the study's scenarios other than batch"
    )


def run_loadgen(request: LoadGenRequest, issue: Issue, folder: Path) -> LoadGenLog:
    """Let LoadGen send queries to ``issue``, and read and remove LoadGen's log in ``folder``.

    LoadGen's threads call ``issue``, which must not raise; ``Answers.complete`` reports answers.
    Raises CapabilityError if LoadGen is not installed, TrialFailed if the log has no result.
    """
    loadgen = _loadgen()
    library = loadgen.ConstructQSL(request.examples, request.examples, _ignore, _ignore)
    system = loadgen.ConstructSUT(issue, _ignore)
    try:
        loadgen.StartTestWithLogSettings(
            system,
            library,
            _test_settings(loadgen, request),
            _log_settings(loadgen, request, folder),
            # By default, LoadGen writes this file into the current folder.
            str(folder / "audit.config"),
        )
    finally:
        loadgen.DestroySUT(system)
        loadgen.DestroyQSL(library)
    return _read_logs(folder)


class Answers:
    """Tells LoadGen which samples are answered, and stores the model's first error.

    No exception may pass through LoadGen. So after an error, further samples count as completed
    without an answer, and ``raise_fault`` raises the error at the end.
    """

    def __init__(self, answered: Answered) -> None:
        self._answered, self._count = answered, 0
        self.fault: Exception | None = None

    def attempt(self, answer: Callable[[], None]) -> None:
        """Call ``answer`` and store the error that it raises; do nothing after an error."""
        if self.fault is None:
            try:
                answer()
            except Exception as error:  # must not cross LoadGen's frames, see above
                self.fault = error

    def complete(self, samples: Sequence[Sample], tokens: int = 0) -> None:
        """Tell LoadGen that these samples are now answered with ``tokens`` tokens each."""
        loadgen = _loadgen()
        loadgen.QuerySamplesComplete(
            [loadgen.QuerySampleResponse(sample.id, 0, 0, tokens) for sample in samples]
        )
        self._count += len(samples)
        self._answered(self._count)

    def raise_fault(self) -> None:
        """Raise the first error of the model, if there was one."""
        if self.fault is not None:
            raise self.fault


def first_tokens(samples: Sequence[Sample]) -> None:
    """Tell LoadGen that the first token of each of these samples is ready."""
    loadgen = _loadgen()
    loadgen.FirstTokenComplete([loadgen.QuerySampleResponse(sample.id, 0, 0) for sample in samples])


def _loadgen() -> Any:
    try:
        import mlperf_loadgen  # noqa: PLC0415 - not built for every platform that measures
    except ImportError:
        reason = missing_loadgen() or "MLPerf's scenarios demand LoadGen; it cannot be loaded"
        raise CapabilityError(reason) from None
    return mlperf_loadgen


def _test_settings(loadgen: Any, request: LoadGenRequest) -> Any:
    settings = loadgen.TestSettings()
    settings.scenario = getattr(loadgen.TestScenario, request.scenario.capitalize())
    settings.mode = loadgen.TestMode.PerformanceOnly
    settings.min_duration_ms = round(request.minimum_seconds * 1e3)
    settings.min_query_count = request.minimum_queries
    settings.offline_expected_qps = request.queries_per_second
    settings.server_target_qps = request.queries_per_second
    settings.server_target_latency_ns = round(request.bound_seconds * 1e9)
    settings.server_target_latency_percentile = request.percentile
    if request.token_bound_seconds is not None:
        settings.use_token_latencies = True
        settings.ttft_latency = round(request.bound_seconds * 1e9)
        settings.tpot_latency = round(request.token_bound_seconds * 1e9)
    for name, seed in _SEEDS.items():
        setattr(settings, name, seed)
    return settings


def _log_settings(loadgen: Any, request: LoadGenRequest, folder: Path) -> Any:
    output = loadgen.LogOutputSettings()
    output.outdir = str(folder)
    output.prefix = _PREFIX
    output.copy_summary_to_stdout = False
    settings = loadgen.LogSettings()
    settings.log_output = output
    settings.enable_trace = request.trace
    return settings


def _ignore(*_: object) -> None:
    """Do nothing when LoadGen calls this to load or unload examples, or to flush queries."""


_MARK = ":::MLLOG "
_SAMPLE = re.compile(rb'"query_seq":\d+,.*?"complete_ns":(\d+)')


@dataclass(frozen=True)
class LoadGenLog:
    """A run's log: ``values`` by key, and ``latencies`` in nanoseconds, empty without a trace."""

    values: dict[str, Any]
    summary: str
    detail: bytes
    latencies: tuple[int, ...]
    trace: bytes


def _read_logs(folder: Path) -> LoadGenLog:
    """Read and remove LoadGen's files in ``folder``; raises TrialFailed if they have no result."""
    try:
        detail = (folder / f"{_PREFIX}detail.txt").read_bytes()
        summary = (folder / f"{_PREFIX}summary.txt").read_text(encoding="utf-8")
        trace = (folder / f"{_PREFIX}trace.json").read_bytes()
    except OSError as error:
        raise TrialFailed(f"LoadGen: expected its log files, got {error}") from None
    for path in folder.glob(f"{_PREFIX}*"):
        path.unlink()
    values = _logged_values(detail.decode("utf-8", "replace"))
    latencies = tuple(map(int, _SAMPLE.findall(trace)))
    if "result_validity" not in values:
        raise TrialFailed("LoadGen: expected a result in its log; it ended without one")
    return LoadGenLog(values, summary, detail, latencies, trace)


def run_record(
    log: LoadGenLog, purpose: Purpose, minimum_seconds: float, rate_asked: float | None
) -> LoadGenRun:
    """The record of a run; ``rate_asked`` (samples/s) is None in the scenario "offline"."""
    values = log.values
    # Keys of the samples per second: of all samples offline, of completed samples for a server.
    keys = ("result_samples_per_second", "result_completed_samples_per_sec")
    rate = float(next(values[key] for key in keys if key in values))
    return LoadGenRun(
        purpose=purpose,
        asked_samples_per_second=rate_asked,
        samples_per_second=rate,
        queries=values["result_query_count"],
        samples=values["result_query_count"] * values["generated_samples_per_query"],
        minimum_seconds=minimum_seconds,
        valid=values["result_validity"] == "VALID",
        kept_bound=None if rate_asked is None else bool(values.get("result_perf_constraints_met")),
        latency=latency_record(values, *_LATENCY_KEYS),
        summary=log.summary,
    )


# Patterns of keys in LoadGen's log: minimum, mean and maximum of a latency, and its percentiles.
_LATENCY_KEYS = ("{}_latency_ns", "{}_percentile_latency")


def latency_record(values: dict[str, Any], plain: str, percentile: str) -> Latency:
    """Make a latency's record from LoadGen's log; ``plain`` and ``percentile`` are key formats.

    Braces become "min", "mean" or "max" in ``plain``, a percentage like "99.00" in ``percentile``.
    """
    keys = {"minimum": "min", "mean": "mean", "maximum": "max"}
    names = {name: plain.format(key) for name, key in keys.items()}
    names |= {f"p{share}": f"{percentile.format(f'{share}.00')}_ns" for share in (50, 90, 99)}
    return Latency(
        **{f"{name}_nanoseconds": values[f"result_{key}"] for name, key in names.items()}
    )


def _logged_values(detail_log: str) -> dict[str, Any]:
    lines = (line.removeprefix(_MARK) for line in detail_log.splitlines() if line.startswith(_MARK))
    entries = (json.loads(line) for line in lines)
    return {entry["key"]: entry["value"] for entry in entries}


# The search stops at 5 %, since runs of a few hundred Poisson arrivals differ by as much by chance.
PRECISION = 0.05
# From 0.7 of the capacity, fourteen runs find a rate within 5 %, over three orders of magnitude.
MOST_TRIES = 16
_UP = 1.25
_DOWN = 2.0
_FIRST_TRY_OF_CAPACITY = 0.7
_MOST_SCORED_RUNS = 8


class LoadGenTrial(ABC):
    """A trial that runs LoadGen several times; LoadGen writes its files into ``folder``."""

    def __init__(self, job: Job, report: Report, folder: Path) -> None:
        self._budget_seconds = job.sampling.budget_seconds
        self._fewest = job.sampling.minimum_samples
        self._folder = folder
        paced = PacedReport(report, time.perf_counter)
        self._answered: Answered = lambda n: paced.at(time.perf_counter(), n, None)
        self._runs: list[LoadGenRun] = []
        self._log: LoadGenLog

    @abstractmethod
    def _run_at_rate(self, rate: float, purpose: Purpose) -> None:
        """Add the record of a run at ``rate`` samples a second to ``_runs``, and set ``_log``."""

    def _prove_highest_rate(
        self, capacity: float, lowest_rate: float, first_share: float, factor: float
    ) -> bool:
        """Find the highest rate that keeps the latency bound, and confirm it in longer runs.

        ``capacity`` is the estimated highest rate without a bound, in samples a second. The first
        longer run has ``first_share`` times the rate found, each further one ``factor`` times the
        last. Returns whether a longer run kept the bound, which ends the runs.
        """
        start = _FIRST_TRY_OF_CAPACITY * capacity
        rate = highest_rate(lambda rate: self._keeps(rate, "search"), start, lowest_rate)
        if rate is None:
            return False
        rates = (rate * first_share * factor**number for number in range(_MOST_SCORED_RUNS))
        return any(self._keeps(rate, "scored") for rate in rates)

    def _keeps(self, rate: float, purpose: Purpose) -> bool:
        self._run_at_rate(rate, purpose)
        return bool(self._runs[-1].kept_bound)

    def _record(
        self, log: LoadGenLog, reported: int | None, start_seconds: float | None = None
    ) -> ServingRecord:
        latencies = log.latencies if reported is not None else ()
        return ServingRecord(
            loadgen=importlib.metadata.version("mlcommons-loadgen"),
            runs=tuple(self._runs),
            reported=reported,
            latencies_nanoseconds=latencies if len(latencies) <= MOST_SAMPLES else (),
            detail_log=base64.b64encode(gzip.compress(log.detail, mtime=0)).decode(),
            start_seconds=start_seconds,
        )


def highest_rate(keeps: Callable[[float], bool], start: float, floor: float) -> float | None:
    """Search from ``start`` for the highest rate, in samples a second, that keeps the bound.

    Tries no rate below ``floor``. Returns None if even ``floor`` exceeds the bound.
    """
    low, high, rate = 0.0, math.inf, max(start, floor)
    for _ in range(MOST_TRIES):
        if keeps(rate):
            low = rate
        elif rate <= floor:
            return None
        else:
            high = rate
        if low and high <= low * (1 + PRECISION):
            break
        rate = _next_rate(low, high, floor)
    return low or None


def _next_rate(low: float, high: float, floor: float) -> float:
    if not low:
        return max(floor, high / _DOWN)
    if math.isinf(high):
        return low * _UP
    return math.sqrt(low * high)
