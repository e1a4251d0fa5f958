"""MLPerf's LoadGen as a library: the one module that imports it.

Owns its settings and its life; what a query means is left to ``scenario``, what it wrote to
``loadgen_log``.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from epochcost.errors import CapabilityError
from epochcost.measure.load.loadgen_log import Logged, read_logs
from epochcost.plan.load import LoadScenario

_MODULE = "mlperf_loadgen"
_PREFIX = "loadgen-"
_SCENARIOS: dict[LoadScenario, str] = {
    "single-stream": "SingleStream",
    "multi-stream": "MultiStream",
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
class Asked:
    """One run of LoadGen.

    ``queries_per_second``: how many a server gets; for streams how many LoadGen prepares; offline,
    samples. ``trace`` logs every sample. ``examples`` is how many there are to ask for.
    """

    scenario: LoadScenario
    minimum_seconds: float
    minimum_queries: int
    queries_per_second: float
    examples: int
    samples_per_query: int = 1
    bound_seconds: float = 0.0
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


def run_loadgen(asked: Asked, issue: Issue, folder: Path) -> Logged:
    """Let LoadGen ask ``issue`` and read what it wrote; its files live in ``folder`` meanwhile.

    ``issue`` is called on threads of LoadGen and must not raise; each sample is answered through
    ``complete``. Raises CapabilityError where LoadGen is not installed.
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
    return read_logs(folder, _PREFIX, by_query=asked.scenario == "multi-stream")


def complete(samples: Sequence[Sample]) -> None:
    """Tell LoadGen that these are answered, now."""
    loadgen = _loadgen()
    loadgen.QuerySamplesComplete(
        [loadgen.QuerySampleResponse(sample.id, 0, 0) for sample in samples]
    )


def _loadgen() -> Any:
    try:
        import mlperf_loadgen  # noqa: PLC0415 - not built for every platform that measures
    except ImportError:
        reason = missing_loadgen() or "MLPerf's scenarios demand LoadGen; it cannot be loaded"
        raise CapabilityError(reason) from None
    return mlperf_loadgen


def _test_settings(loadgen: Any, asked: Asked) -> Any:
    settings = loadgen.TestSettings()
    settings.scenario = getattr(loadgen.TestScenario, _SCENARIOS[asked.scenario])
    settings.mode = loadgen.TestMode.PerformanceOnly
    settings.min_duration_ms = round(asked.minimum_seconds * 1e3)
    settings.min_query_count = asked.minimum_queries
    expected_nanoseconds = max(1, round(1e9 / asked.queries_per_second))
    settings.single_stream_expected_latency_ns = expected_nanoseconds
    settings.multi_stream_expected_latency_ns = expected_nanoseconds
    settings.multi_stream_samples_per_query = asked.samples_per_query
    settings.offline_expected_qps = asked.queries_per_second
    settings.server_target_qps = asked.queries_per_second
    settings.server_target_latency_ns = round(asked.bound_seconds * 1e9)
    settings.server_target_latency_percentile = asked.percentile
    for name, seed in _SEEDS.items():
        setattr(settings, name, seed)
    return settings


def _log_settings(loadgen: Any, asked: Asked, folder: Path) -> Any:
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
