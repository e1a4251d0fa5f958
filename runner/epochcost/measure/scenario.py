"""One trial under LoadGen: the model is warmed up, then asked as the scenario says.

Owns durations, counts and rates, and the search for the highest rate of arrivals that keeps a
latency bound; sessions and answers are left to ``serving``.
"""

from __future__ import annotations

import base64
import gzip
import math
import statistics
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from epochcost.measure.job import Job, JobError
from epochcost.measure.loadgen import (
    Issue,
    LoadGenLog,
    LoadGenRequest,
    loadgen_version,
    run_loadgen,
    run_record,
)
from epochcost.measure.sampling import PacedReport, Report, warm_up
from epochcost.measure.serving import ServedModel, answering_at_once, answering_from_queue
from epochcost.plan.work import Load
from epochcost.results.served import LoadGenRun, Purpose, ServingRecord
from epochcost.specs.study import MOST_SAMPLES

# Of the budget: half for the run that counts, the rest for about ten tries.
_SCORED_SHARE = 0.5
_SEARCH_SHARE = 0.05
_LEAST_SEARCH_SECONDS = 0.5
# LoadGen prepares its queries beforehand: a quarter more than the warm-up promises, then doubled.
_PREPARED = 1.25
_MORE = 2.0
_MOST_RUNS = 4
# LoadGen hands an offline run's samples over as as many Python objects.
_MOST_PREPARED = 10_000_000
# The model alone is many times faster than all around it where it is tiny.
_TRIED_OF_BARE = 0.1
_FIRST_TRY_OF_CAPACITY = 0.7
# At a tenth of one sample's rate an arrival rarely waits for another.
_LEAST_UTILISATION = 0.1
# Where the longer run does not keep what the short ones did.
_LESS = 0.9
_MOST_SCORED_RUNS = 8


@dataclass(frozen=True)
class _Pace:
    """How long and how much LoadGen asks at least."""

    scored_seconds: float
    search_seconds: float
    minimum_samples: int


def warm_up_sizes(job: Job, model: ServedModel, report: Report) -> dict[int, tuple[float, ...]]:
    """Run every batch size until it has settled; by size, the times of its runs in seconds."""
    share = job.sampling.budget_seconds / len(model.sizes)
    return {
        size: warm_up(_full(model, size), time.perf_counter, job.warm_up, share, report)
        for size in model.sizes
    }


def _full(model: ServedModel, size: int) -> Callable[[], None]:
    indices = [index % model.example_count for index in range(size)]
    return lambda: model(indices)


def run_scenario(
    job: Job,
    model: ServedModel,
    warmup: Mapping[int, tuple[float, ...]],
    report: Report,
    folder: Path,
) -> ServingRecord:
    """Run the job's scenario on a warm model; LoadGen's files live in ``folder`` while it runs.

    Raises CapabilityError without LoadGen, JobError where the queries would not fit in memory.
    """
    assert job.serving is not None, "only jobs that serve have a scenario"
    service_seconds = {size: _settled_seconds(times) for size, times in warmup.items()}
    return _Scenario(job, job.serving.load, model, service_seconds, report, folder).run()


def _settled_seconds(times: tuple[float, ...]) -> float:
    return statistics.median(times[-max(1, len(times) // 3) :])


class _Scenario:
    """Asks LoadGen for runs and keeps what each left."""

    def __init__(
        self,
        job: Job,
        load: Load,
        model: ServedModel,
        service_seconds: Mapping[int, float],
        report: Report,
        folder: Path,
    ) -> None:
        self._load, self._model, self._service = load, model, service_seconds
        self._folder = folder
        self._most = model.sizes[-1]
        self._pace = _pace(job)
        paced = PacedReport(report, time.perf_counter)
        self._answered = lambda count: paced.at(time.perf_counter(), count, None)
        self._runs: list[LoadGenRun] = []

    def run(self) -> ServingRecord:
        served = self._server if self._load.scenario == "server" else self._offline
        logged, reported = served()
        raw = logged.latencies if reported is not None else ()
        return ServingRecord(
            loadgen=loadgen_version(),
            runs=tuple(self._runs),
            reported=reported,
            latencies_nanoseconds=raw if len(raw) <= MOST_SAMPLES else (),
            detail_log=base64.b64encode(gzip.compress(logged.detail, mtime=0)).decode(),
        )

    def _offline(self) -> tuple[LoadGenLog, int]:
        """Prepare enough samples that the run lasts as long as requested, and report that run."""
        rate = _PREPARED * self._capacity()
        for _ in range(_MOST_RUNS):
            self._require_affordable(rate)
            logged = self._ask(self._load, rate, self._pace.scored_seconds, "scored")
            if logged.lasted:
                break
            rate *= _MORE
        return logged, len(self._runs) - 1

    def _capacity(self) -> float:
        """Samples per second when all are there at once, LoadGen's part and ours included."""
        bare = max(size / seconds for size, seconds in self._service.items())
        rate = _TRIED_OF_BARE * bare
        self._ask(Load(scenario="offline"), rate, self._pace.search_seconds, "capacity")
        return self._runs[-1].samples_per_second

    def _server(self) -> tuple[LoadGenLog, int | None]:
        """Find the highest rate in short runs, then prove it in one that counts."""
        start, floor = self._rates_to_try()
        tries: list[LoadGenLog] = []

        def keeps(rate: float) -> bool:
            tries.append(self._ask(self._load, rate, self._pace.search_seconds, "search"))
            return tries[-1].kept_bound

        rate = highest_rate(keeps, start, floor)
        for _ in range(_MOST_SCORED_RUNS if rate else 0):
            assert rate is not None, "the loop is empty without a rate"
            self._require_affordable(rate)
            tries.append(self._ask(self._load, rate, self._pace.scored_seconds, "scored"))
            if tries[-1].kept_bound:
                return tries[-1], len(self._runs) - 1
            rate *= _LESS
        assert tries, "the search asks at least once"
        return tries[-1], None

    def _rates_to_try(self) -> tuple[float, float]:
        """The first and the lowest; where one sample alone is too late, one rate shows it."""
        alone = 1 / self._service[1]
        if self._service[1] > self._bound_seconds:
            return alone, alone
        capacity = self._capacity()
        return _FIRST_TRY_OF_CAPACITY * capacity, _LEAST_UTILISATION * min(alone, capacity)

    def _ask(self, load: Load, rate: float, seconds: float, purpose: Purpose) -> LoadGenLog:
        least = self._pace.minimum_samples
        asked = LoadGenRequest(
            scenario=load.scenario,
            minimum_seconds=seconds,
            minimum_queries=least,
            queries_per_second=rate,
            examples=self._model.example_count,
            bound_seconds=self._bound_seconds,
            percentile=float(load.latency_percentile or 0.99),
        )
        # A trace takes about 300 bytes of scratch room a sample: none where it is thrown away.
        traced = purpose == "scored" and max(rate * seconds, least) <= 2 * MOST_SAMPLES
        with self._answering(load) as issue:
            logged = run_loadgen(replace(asked, trace=traced), issue, self._folder)
        per_second = rate if load.scenario == "server" else None
        self._runs.append(run_record(logged, purpose, seconds, per_second))
        return logged

    def _answering(self, load: Load) -> AbstractContextManager[Issue]:
        if load.scenario != "server":
            return answering_at_once(self._model, self._most, self._answered)
        delay_seconds = float(load.maximum_delay_ms or 0) / 1e3
        return answering_from_queue(self._model, self._most, delay_seconds, self._answered)

    @property
    def _bound_seconds(self) -> float:
        return float(self._load.server_latency_ms or 0) / 1e3

    def _require_affordable(self, rate: float) -> None:
        prepared = rate * self._pace.scored_seconds
        if prepared > _MOST_PREPARED:
            raise JobError(
                f"{self._load.scenario}: expected at most {_MOST_PREPARED:,} queries, which "
                f"LoadGen prepares in memory; {self._pace.scored_seconds:.0f} s of this model "
                f"would take {prepared:,.0f}: measure it with a smaller budget_seconds"
            )


def _pace(job: Job) -> _Pace:
    budget, fewest = job.sampling.budget_seconds, job.sampling.minimum_samples
    return _Pace(_SCORED_SHARE * budget, max(_LEAST_SEARCH_SECONDS, _SEARCH_SHARE * budget), fewest)


# Asks whether a rate, in samples per second, keeps the bound.
KeepsBound = Callable[[float], bool]

# A rate is told to 5 %: neighbouring tries of a few hundred Poisson arrivals differ by as much.
PRECISION = 0.05
# From 0.7 of the capacity, fourteen tries reach 5 % within three orders of magnitude.
MOST_TRIES = 16
_UP = 1.25
_DOWN = 2.0


def highest_rate(keeps: KeepsBound, start: float, floor: float) -> float | None:
    """Bracket the highest rate that keeps the bound, then bisect on a logarithmic scale.

    Goes down from ``start`` by halves, at the lowest to ``floor``, or up by quarters. Returns the
    highest rate that was seen to keep the bound, None where not even ``floor`` does.
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
        rate = _next(low, high, floor)
    return low or None


def _next(low: float, high: float, floor: float) -> float:
    if not low:
        return max(floor, high / _DOWN)
    if math.isinf(high):
        return low * _UP
    return math.sqrt(low * high)
