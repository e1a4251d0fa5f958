"""Measure a model under LoadGen: warm it up, then let LoadGen send queries by its scenario.

This module decides durations, counts and rates. ``serving`` opens sessions and answers, ``loadgen``
searches for the highest rate of arrivals.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from functools import partial
from itertools import chain
from pathlib import Path

from epochcost.measure.agreement import agreement
from epochcost.measure.job import Job, JobError, ServingFiles
from epochcost.measure.loadgen import Issue, LoadGenRequest, LoadGenTrial, run_loadgen, run_record
from epochcost.measure.memory import peak_memory_bytes
from epochcost.measure.sampling import Report, TrialProgress, to_nanoseconds, warm_up
from epochcost.measure.serving import ServedModel, answering_at_once, answering_from_queue
from epochcost.plan.work import Load
from epochcost.results.records import Measurement
from epochcost.results.served import Purpose, ServingRecord
from epochcost.specs.study import MOST_SAMPLES

# Shares of the budget: half for the scored run, the rest for about ten tries.
_SCORED_SHARE = 0.5
_SEARCH_SHARE = 0.05
_LEAST_SEARCH_SECONDS = 0.5
# LoadGen prepares its queries beforehand: a quarter more than the warm-up suggests, then doubled.
_PREPARED = 1.25
_MORE = 2.0
_MOST_RUNS = 4
# LoadGen hands over each sample of an offline run as a Python object.
_MOST_PREPARED = 10_000_000
# LoadGen and our code take most of the time of a tiny model.
_TRIED_OF_BARE = 0.1
# At a tenth of one sample's rate an arrival rarely waits for another.
_LEAST_UTILISATION = 0.1
# Factor of the next rate if the longer run does not keep the bound.
_LESS = 0.9


def measure_load(
    job: Job, files: ServingFiles, progress: TrialProgress, folder: Path
) -> Measurement:
    """Warm a model up and let LoadGen query it; LoadGen's files are written to ``folder``.

    Raises CapabilityError if LoadGen is missing, JobError if the queries would not fit in
    memory.
    """
    model = ServedModel(job, files.graphs, folder)
    progress.enter("warm-up")
    warmup = _warm_up_sizes(job, model, progress.report)
    progress.enter("sampling")
    served = _Scenario(job, files.load, model, warmup, progress.report, folder).run()
    peak_bytes = peak_memory_bytes()
    progress.enter("finishing")
    return Measurement(
        started_at=progress.started_at,
        wall_seconds=progress.wall_seconds(),
        warmup_seconds=to_nanoseconds(chain.from_iterable(warmup.values())),
        served=served,
        samples_seconds=(),
        stop_reason="loadgen",
        placement=model.placement,
        steps_taken=model.runs,
        peak_memory_bytes=peak_bytes,
        agreement=agreement(job, model.first_outputs),
    )


def _warm_up_sizes(job: Job, model: ServedModel, report: Report) -> dict[int, tuple[float, ...]]:
    """Run each batch size until its time settles.

    Returns the run times in seconds by batch size.
    """
    share = job.sampling.budget_seconds / len(model.sizes)
    times: dict[int, tuple[float, ...]] = {}
    for size in model.sizes:
        answer = partial(model, [index % model.example_count for index in range(size)])
        times[size] = warm_up(answer, time.perf_counter, job.warm_up, share, report)
    return times


class _Scenario(LoadGenTrial):
    def __init__(
        self,
        job: Job,
        load: Load,
        model: ServedModel,
        warmup: Mapping[int, tuple[float, ...]],
        report: Report,
        folder: Path,
    ) -> None:
        super().__init__(job, report, folder)
        self._load, self._model = load, model
        self._service = {
            size: statistics.median(times[-max(1, len(times) // 3) :])
            for size, times in warmup.items()
        }
        self._bound_seconds = load.bound_seconds or 0.0
        self._scored_seconds = _SCORED_SHARE * self._budget_seconds
        self._search_seconds = max(_LEAST_SEARCH_SECONDS, _SEARCH_SHARE * self._budget_seconds)

    def run(self) -> ServingRecord:
        counts = self._server() if self._load.scenario == "server" else self._offline()
        return self._record(self._log, len(self._runs) - 1 if counts else None)

    def _offline(self) -> bool:
        """Run the scenario "offline", and again with more samples if the run ends too early.

        The last run gives the result.
        """
        rate = _PREPARED * self._capacity()
        for _ in range(_MOST_RUNS):
            self._ask(rate, "scored")
            if self._log.lasted:
                break
            rate *= _MORE
        return True

    def _server(self) -> bool:
        """Search for the highest rate at which latencies keep their bound.

        Returns whether a rate was found. If even a single sample takes longer than the bound, the
        function tries only one rate.
        """
        alone = 1 / self._service[1]
        if self._service[1] > self._bound_seconds:
            return self._prove_highest(alone, alone, 1.0, _LESS)
        capacity = self._capacity()
        floor = _LEAST_UTILISATION * min(alone, capacity)
        return self._prove_highest(capacity, floor, 1.0, _LESS)

    def _capacity(self) -> float:
        """Samples per second if all arrive at once, measured by a run of LoadGen.

        Unlike bare runs of the model, this includes the time of LoadGen and of our code.
        """
        bare = max(size / seconds for size, seconds in self._service.items())
        self._ask(_TRIED_OF_BARE * bare, "capacity")
        return self._runs[-1].samples_per_second

    def _ask(self, rate: float, purpose: Purpose) -> None:
        load = Load(scenario="offline") if purpose == "capacity" else self._load
        seconds = self._scored_seconds if purpose == "scored" else self._search_seconds
        if purpose == "scored":
            self._require_affordable(rate)
        # A trace takes about 300 bytes of disk a sample, so that unused traces are not written.
        traced = purpose == "scored" and max(rate * seconds, self._fewest) <= 2 * MOST_SAMPLES
        request = LoadGenRequest(
            scenario=load.scenario,
            minimum_seconds=seconds,
            minimum_queries=self._fewest,
            queries_per_second=rate,
            examples=self._model.example_count,
            bound_seconds=self._bound_seconds,
            percentile=float(load.latency_percentile or 0.99),
            trace=traced,
        )
        with self._answering(load) as issue:
            self._log = run_loadgen(request, issue, self._folder)
        per_second = rate if load.scenario == "server" else None
        self._runs.append(run_record(self._log, purpose, seconds, per_second))

    def _answering(self, load: Load) -> AbstractContextManager[Issue]:
        most = self._model.sizes[-1]
        if load.scenario != "server":
            return answering_at_once(self._model, most, self._answered)
        delay_seconds = float(load.maximum_delay_ms or 0) / 1e3
        return answering_from_queue(self._model, most, delay_seconds, self._answered)

    def _require_affordable(self, rate: float) -> None:
        prepared = rate * self._scored_seconds
        if prepared > _MOST_PREPARED:
            raise JobError(
                f"{self._load.scenario}: expected at most {_MOST_PREPARED:,} queries, which "
                f"LoadGen prepares in memory; {self._scored_seconds:.0f} s of this model "
                f"would take {prepared:,.0f}: measure it with a smaller budget_seconds"
            )
