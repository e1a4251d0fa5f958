"""MLPerf's LoadGen as a library: the one module that imports it.

Owns its settings, its life, and the reading of what it wrote: its detail log as values, its
summary, and latencies from its trace. LoadGen logs a line ``:::MLLOG {json}`` for each value; a
trace has an event for each sample, whose ``complete_ns`` counts from when the sample was scheduled
(mlcommons/inference, loadgen/logging.cc). What a query means is left to ``scenario``.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from epochcost.errors import CapabilityError
from epochcost.measure.job import TrialFailed
from epochcost.plan.work import LoadScenario
from epochcost.results.served import Latency, LoadGenRun, Purpose, TokenRun

_MODULE = "mlperf_loadgen"
_PREFIX = "loadgen-"
_SCENARIOS: dict[LoadScenario, str] = {
    "offline": "Offline",
    "server": "Server",
}
# The seeds of every scenario in mlcommons/inference, loadgen/mlperf.conf, revision 001712e9: the
# same arrivals and the same choice of examples on every machine.
_SEEDS = {
    "qsl_rng_seed": 1780908523862526354,
    "sample_index_rng_seed": 14771362308971278857,
    "schedule_rng_seed": 18209322760996052031,
}


class Sample(Protocol):
    """One question: ``index`` is the example, ``id`` what an answer must name."""

    id: int
    index: int


Issue = Callable[[Sequence[Sample]], None]


@dataclass(frozen=True)
class LoadGenRequest:
    """One run of LoadGen.

    ``queries_per_second``: how many a server gets; offline, samples to prepare. With
    ``token_bound_seconds``, that of every further token, ``bound_seconds`` is of the first one.
    ``trace`` logs every sample. ``examples`` is how many there are to ask for.
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
    """Why LoadGen cannot be used here; None where it can."""
    if importlib.util.find_spec(_MODULE) is not None:
        return None
    return (
        "MLPerf's scenarios demand LoadGen; the package mlcommons-loadgen is not installed: "
        "`pip install mlcommons-loadgen` where it is built (Linux on x86-64, macOS on Arm, "
        "Python up to 3.13), or leave out the study's scenarios other than batch"
    )


def loadgen_version() -> str:
    """LoadGen's version."""
    return importlib.metadata.version("mlcommons-loadgen")


def run_loadgen(asked: LoadGenRequest, issue: Issue, folder: Path) -> LoadGenLog:
    """Let LoadGen ask ``issue`` and read what it wrote; its files live in ``folder`` meanwhile.

    ``issue`` is called on threads of LoadGen and must not raise; each sample is answered through
    ``complete_samples``. Raises CapabilityError where LoadGen is not installed.
    """
    loadgen = _loadgen()
    library = loadgen.ConstructQSL(asked.examples, asked.examples, _nothing, _nothing)
    system = loadgen.ConstructSUT(issue, _flush)
    try:
        loadgen.StartTestWithLogSettings(
            system,
            library,
            _test_settings(loadgen, asked),
            _log_settings(loadgen, asked, folder),
            # By default a file of the current folder, which is none of LoadGen's business.
            str(folder / "audit.config"),
        )
    finally:
        loadgen.DestroySUT(system)
        loadgen.DestroyQSL(library)
    return read_logs(folder, _PREFIX)


def complete_samples(samples: Sequence[Sample], tokens: int = 0) -> None:
    """Tell LoadGen that these samples are answered now, each by so many tokens."""
    loadgen = _loadgen()
    loadgen.QuerySamplesComplete(
        [loadgen.QuerySampleResponse(sample.id, 0, 0, tokens) for sample in samples]
    )


def first_tokens(samples: Sequence[Sample]) -> None:
    """Tell LoadGen that the first tokens of these samples are there now."""
    loadgen = _loadgen()
    loadgen.FirstTokenComplete([loadgen.QuerySampleResponse(sample.id, 0, 0) for sample in samples])


def _loadgen() -> Any:
    try:
        import mlperf_loadgen  # noqa: PLC0415 - not built for every platform that measures
    except ImportError:
        reason = missing_loadgen() or "MLPerf's scenarios demand LoadGen; it cannot be loaded"
        raise CapabilityError(reason) from None
    return mlperf_loadgen


def _test_settings(loadgen: Any, asked: LoadGenRequest) -> Any:
    settings = loadgen.TestSettings()
    settings.scenario = getattr(loadgen.TestScenario, _SCENARIOS[asked.scenario])
    settings.mode = loadgen.TestMode.PerformanceOnly
    settings.min_duration_ms = round(asked.minimum_seconds * 1e3)
    settings.min_query_count = asked.minimum_queries
    settings.offline_expected_qps = asked.queries_per_second
    settings.server_target_qps = asked.queries_per_second
    settings.server_target_latency_ns = round(asked.bound_seconds * 1e9)
    settings.server_target_latency_percentile = asked.percentile
    if asked.token_bound_seconds is not None:
        settings.use_token_latencies = True
        settings.ttft_latency = round(asked.bound_seconds * 1e9)
        settings.tpot_latency = round(asked.token_bound_seconds * 1e9)
    for name, seed in _SEEDS.items():
        setattr(settings, name, seed)
    return settings


def _log_settings(loadgen: Any, asked: LoadGenRequest, folder: Path) -> Any:
    output = loadgen.LogOutputSettings()
    output.outdir = str(folder)
    output.prefix = _PREFIX
    output.copy_summary_to_stdout = False
    settings = loadgen.LogSettings()
    settings.log_output = output
    settings.enable_trace = asked.trace
    return settings


def _nothing(_: Sequence[int]) -> None:
    """Examples are in memory from the start."""


def _flush() -> None:
    """Nothing is held back for a later query: what waits is answered in its own time."""


_MARK = ":::MLLOG "
_SAMPLE = re.compile(rb'"query_seq":\d+,.*?"complete_ns":(\d+)')


@dataclass(frozen=True)
class LoadGenLog:
    """What LoadGen logged of one run; without a trace there are no ``latencies``."""

    values: dict[str, Any]
    summary: str
    detail: bytes
    latencies: tuple[int, ...]
    trace: bytes = b""

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


def read_logs(folder: Path, prefix: str) -> LoadGenLog:
    """Read and remove what LoadGen left in ``folder``.

    Raises TrialFailed where LoadGen left no result.
    """
    try:
        detail = (folder / f"{prefix}detail.txt").read_bytes()
        summary = (folder / f"{prefix}summary.txt").read_text(encoding="utf-8")
        trace = (folder / f"{prefix}trace.json").read_bytes()
    except OSError as error:
        raise TrialFailed(f"LoadGen: expected its log files, got {error}") from None
    for path in folder.glob(f"{prefix}*"):
        path.unlink()
    values = _values(detail.decode("utf-8", "replace"))
    if "result_validity" not in values:
        raise TrialFailed("LoadGen: expected a result in its log; it ended without one")
    return LoadGenLog(values, summary, detail, _latencies(trace), trace)


def run_record(
    log: LoadGenLog, purpose: Purpose, minimum_seconds: float, asked: float | None
) -> LoadGenRun:
    """One run as it is stored; ``asked`` is a server's rate."""
    values = log.values
    return LoadGenRun(
        purpose=purpose,
        asked_samples_per_second=asked,
        samples_per_second=_rate(values),
        queries=values["result_query_count"],
        samples=values["result_query_count"] * values["generated_samples_per_query"],
        minimum_seconds=minimum_seconds,
        valid=log.valid,
        kept_bound=None if asked is None else log.kept_bound,
        latency=_latency(values),
        summary=log.summary,
    )


def _rate(values: dict[str, Any]) -> float:
    """Samples per second: offline of all, of a server's those completed."""
    keys = ("result_samples_per_second", "result_completed_samples_per_sec")
    return float(next(values[key] for key in keys if key in values))


def _latency(values: dict[str, Any]) -> Latency:
    return Latency(
        minimum_nanoseconds=values["result_min_latency_ns"],
        mean_nanoseconds=values["result_mean_latency_ns"],
        p50_nanoseconds=values["result_50.00_percentile_latency_ns"],
        p90_nanoseconds=values["result_90.00_percentile_latency_ns"],
        p99_nanoseconds=values["result_99.00_percentile_latency_ns"],
        maximum_nanoseconds=values["result_max_latency_ns"],
    )


def _values(detail: str) -> dict[str, Any]:
    """By key the last value logged."""
    lines = (line.removeprefix(_MARK) for line in detail.splitlines() if line.startswith(_MARK))
    entries = (json.loads(line) for line in lines)
    return {entry["key"]: entry["value"] for entry in entries}


def _latencies(trace: bytes) -> tuple[int, ...]:
    return tuple(map(int, _SAMPLE.findall(trace)))


# Both events of a sample bear the time for which it was scheduled.
_FIRST_TOKEN = re.compile(
    rb'"Token_Latency".*?"ts":([\d.]+).*?"issue_delay":(\d+),"issue_to_done":(\d+)'
)
_ANSWER = re.compile(rb'"Sample".*?"ts":([\d.]+).*?"sample_idx":(\d+).*?"complete_ns":(\d+)')


class TokenTrace:
    """Of every request of a run, in the order of arrival: its number, and when tokens came.

    ``prompts`` and ``answers`` are tokens by number. Raises TrialFailed where LoadGen's trace does
    not tell of each.
    """

    def __init__(self, log: LoadGenLog, prompts: Sequence[int], answers: Sequence[int]) -> None:
        first = {
            when: int(delay) + int(done) for when, delay, done in _FIRST_TOKEN.findall(log.trace)
        }
        found = [
            (first.get(when), int(number), int(done))
            for when, number, done in _ANSWER.findall(log.trace)
        ]
        if len(found) != log.values["result_query_count"] or None in [one for one, _, _ in found]:
            raise TrialFailed("LoadGen: expected the first token of every request in its trace")
        self.first = tuple(one for one, _, _ in found if one is not None)
        self.further = tuple(
            (done - begun) // (answers[number] - 1)
            for begun, (_, number, done) in zip(self.first, found, strict=True)
        )
        self.read = sum(prompts[number] for _, number, _ in found)
        self.written = sum(answers[number] for _, number, _ in found)


# What LoadGen calls least, mean and most of a latency, and its percentiles.
_FIRST_KEYS = "first_token_{}_latency_ns", "first_token_{}_percentile_latency"
_FURTHER_KEYS = "time_to_output_token_{}", "time_per_output_token_{}_percentile"


def token_record(log: LoadGenLog, trace: TokenTrace, *, raw: bool) -> TokenRun:
    """The tokens of one run as they are stored; ``raw`` with the latencies of each request."""
    values = log.values
    return TokenRun(
        first=_token_latency(values, *_FIRST_KEYS),
        further=_token_latency(values, *_FURTHER_KEYS),
        read=trace.read,
        written=trace.written,
        first_nanoseconds=trace.first if raw else (),
        further_nanoseconds=trace.further if raw else (),
    )


def _token_latency(values: dict[str, Any], plain: str, percentile: str) -> Latency:
    keys = {"minimum": "min", "mean": "mean", "maximum": "max"}
    said = {name: plain.format(key) for name, key in keys.items()}
    said |= {f"p{share}": f"{percentile.format(f'{share}.00')}_ns" for share in (50, 90, 99)}
    return Latency(**{f"{name}_nanoseconds": values[f"result_{key}"] for name, key in said.items()})
