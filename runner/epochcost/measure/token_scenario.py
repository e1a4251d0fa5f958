"""One trial of a decoder behind an engine: requests at random times, at rates it keeps its bounds.

LoadGen asks as its scenario server does, with latencies of tokens. The highest rate whose first and
further tokens keep their bounds is searched for, proved in a run that counts, and then shares of it
are asked. Owns counts and rates; the engine is left to ``engine``, LoadGen to ``loadgen``.
"""

from __future__ import annotations

import base64
import gzip
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from epochcost.measure.engine import DecoderEngine, answer_while
from epochcost.measure.job import Job
from epochcost.measure.loadgen import (
    LoadGenLog,
    LoadGenRequest,
    TokenTrace,
    loadgen_version,
    run_loadgen,
    run_record,
    token_record,
)
from epochcost.measure.sampling import PacedReport, Report
from epochcost.measure.scenario import highest_rate
from epochcost.plan.work import BOUNDS_LONG, ENGINE_SEQUENCES, Requests
from epochcost.results.served import LoadGenRun, Purpose, ServingRecord

# Batches that are answered beforehand; the time of the last ones tells where to begin.
_WARM_UP_BATCHES = 3
# Of the budget; about eight tries find the rate.
_SEARCH_SHARE, _TRIES = 0.25, 8
_FIRST_TRY_OF_CAPACITY = 0.7
_LEAST_UTILISATION = 0.05
# Where the run that counts begins, after the short ones, and how it goes down.
_FIRST_SCORED, _LESS = 0.9, 0.95
_MOST_SCORED_RUNS = 8


def warm_up_engine(engine: DecoderEngine) -> tuple[float, ...]:
    """Answer some whole batches; seconds of each."""
    batches = [
        range(begin, begin + ENGINE_SEQUENCES)
        for begin in range(0, _WARM_UP_BATCHES * ENGINE_SEQUENCES, ENGINE_SEQUENCES)
    ]
    return tuple(engine.answer(batch) for batch in batches)


def run_requests(
    job: Job,
    requests: Requests,
    engine: DecoderEngine,
    warmup: Sequence[float],
    report: Report,
    folder: Path,
) -> ServingRecord:
    """Find the highest rate and ask shares of it; LoadGen's files live in ``folder`` meanwhile."""
    return _Requests(job, requests, engine, ENGINE_SEQUENCES / warmup[-1], report, folder).run()


class _Requests:
    """Asks LoadGen for runs and keeps what each left."""

    def __init__(
        self,
        job: Job,
        requests: Requests,
        engine: DecoderEngine,
        capacity: float,
        report: Report,
        folder: Path,
    ) -> None:
        self._requests, self._engine = requests, engine
        self._capacity, self._folder = capacity, folder
        self._budget_seconds = job.sampling.budget_seconds
        self._fewest = job.sampling.minimum_samples
        paced = PacedReport(report, time.perf_counter)
        self._answered: Callable[[int], None] = lambda n: paced.at(time.perf_counter(), n, None)
        self._runs: list[LoadGenRun] = []

    def run(self) -> ServingRecord:
        """The search, the run at the highest rate, and the shares of it, lowest first."""
        logged, reported = self._highest()
        latencies = logged.latencies if reported is not None else ()
        if reported is not None:
            highest = self._runs[reported].asked_samples_per_second
            assert highest is not None, "a server's runs have a rate"
            for percent in sorted({*self._requests.load_percents} - {100}):
                self._ask(highest * percent / 100, self._scored_count(highest), "share")
        return ServingRecord(
            loadgen=loadgen_version(),
            runs=tuple(self._runs),
            reported=reported,
            latencies_nanoseconds=latencies,
            detail_log=base64.b64encode(gzip.compress(logged.detail, mtime=0)).decode(),
            start_seconds=self._engine.start_seconds,
        )

    def _highest(self) -> tuple[LoadGenLog, int | None]:
        tries: list[LoadGenLog] = []
        count = self._count(_SEARCH_SHARE * self._budget_seconds / _TRIES * self._capacity, 0.5)

        def keeps(rate: float) -> bool:
            tries.append(self._ask(rate, count, "search"))
            return bool(self._runs[-1].kept_bound)

        floor = _LEAST_UTILISATION * self._capacity
        rate = highest_rate(keeps, _FIRST_TRY_OF_CAPACITY * self._capacity, floor)
        if rate is None:
            return tries[-1], None
        rate *= _FIRST_SCORED
        for _ in range(_MOST_SCORED_RUNS):
            tries.append(self._ask(rate, self._scored_count(rate), "scored"))
            if self._runs[-1].kept_bound:
                return tries[-1], len(self._runs) - 1
            rate *= _LESS
        return tries[-1], None

    def _scored_count(self, highest: float) -> int:
        """How many requests each run has, so that all together take what is left of the budget."""
        times = sum(100 / percent for percent in {*self._requests.load_percents, 100})
        return self._count((1 - _SEARCH_SHARE) * self._budget_seconds * highest / times, 1.0)

    def _count(self, wanted: float, share: float) -> int:
        return max(round(share * self._fewest), round(wanted))

    def _ask(self, rate: float, count: int, purpose: Purpose) -> LoadGenLog:
        asked = LoadGenRequest(
            scenario="server",
            minimum_seconds=BOUNDS_LONG[purpose] * self._requests.first_token_ms / 1e3,
            minimum_queries=count,
            queries_per_second=rate,
            examples=len(self._engine.answer_tokens),
            bound_seconds=self._requests.first_token_ms / 1e3,
            token_bound_seconds=self._requests.token_ms / 1e3,
            percentile=self._requests.percentile / 100,
            trace=True,
        )
        logged = answer_while(
            self._engine, lambda issue: run_loadgen(asked, issue, self._folder), self._answered
        )
        trace = TokenTrace(logged, self._engine.prompt_tokens, self._engine.answer_tokens)
        tokens = token_record(logged, trace, raw=purpose != "search")
        record = run_record(logged, purpose, asked.minimum_seconds, rate)
        kept = tokens.keeps(self._requests)
        self._runs.append(record.model_copy(update={"tokens": tokens, "kept_bound": kept}))
        return logged
