"""Measure a decoder in a serving engine under LoadGen's scenario "server" (random arrivals)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from epochcost.measure.engine import DecoderEngine, answer_while
from epochcost.measure.job import AskedDecoder, Job, TrialFailed
from epochcost.measure.loadgen import (
    Answers,
    LoadGenLog,
    LoadGenRequest,
    LoadGenTrial,
    latency_record,
    run_loadgen,
    run_record,
)
from epochcost.measure.memory import peak_memory_bytes
from epochcost.measure.sampling import Report, TrialProgress, to_nanoseconds
from epochcost.plan.work import BOUNDS_LONG, ENGINE_SEQUENCES, Requests
from epochcost.results.records import Measurement
from epochcost.results.served import Purpose, ServingRecord, TokenRun

# Number of batches of the warm-up; the first rate is computed from the time of the last batch.
_WARM_UP_BATCHES = 3
# Share of the time budget for the search, which takes about eight runs.
_SEARCH_SHARE, _TRIES = 0.25, 8
_LEAST_UTILISATION = 0.05
# Rate of the first longer run, as a share of the rate from short runs, and the factor between
# further longer runs.
_FIRST_SCORED, _LESS = 0.9, 0.95


def measure_requests(
    job: Job, decoder: AskedDecoder, progress: TrialProgress, folder: Path
) -> Measurement:
    """Measure a decoder at the highest request rate within the latency bounds, and at lower rates.

    The bounds limit the latency of the first token and of further tokens.
    """
    engine = DecoderEngine(job, decoder, folder)
    progress.enter("warm-up")
    begins = range(0, _WARM_UP_BATCHES * ENGINE_SEQUENCES, ENGINE_SEQUENCES)
    warmup = [engine.answer(range(begin, begin + ENGINE_SEQUENCES)) for begin in begins]
    progress.enter("sampling")
    capacity = ENGINE_SEQUENCES / warmup[-1]
    asking = _Requests(job, decoder.requests, engine, capacity, progress.report, folder)
    served = asking.run()
    progress.enter("finishing")
    return Measurement(
        started_at=progress.started_at,
        wall_seconds=progress.wall_seconds(),
        warmup_seconds=to_nanoseconds(warmup),
        served=served,
        samples_seconds=(),
        stop_reason="loadgen",
        placement=engine.placement,
        steps_taken=sum(run.samples for run in served.runs),
        peak_memory_bytes=peak_memory_bytes(),
    )


class _Requests(LoadGenTrial):
    def __init__(
        self,
        job: Job,
        requests: Requests,
        engine: DecoderEngine,
        capacity: float,
        report: Report,
        folder: Path,
    ) -> None:
        super().__init__(job, report, folder)
        self._requests, self._engine, self._capacity = requests, engine, capacity
        search = _SEARCH_SHARE * self._budget_seconds / _TRIES * capacity
        self._search_count = max(round(0.5 * self._fewest), round(search))
        self._scored_count = 0

    def run(self) -> ServingRecord:
        floor, start_seconds = _LEAST_UTILISATION * self._capacity, self._engine.start_seconds
        if not self._prove_highest_rate(self._capacity, floor, _FIRST_SCORED, _LESS):
            return self._record(self._log, None, start_seconds)
        reported, log = len(self._runs) - 1, self._log
        highest = self._runs[reported].asked_samples_per_second or 0.0
        for percent in sorted({*self._requests.load_percents} - {100}):
            self._run_at_rate(highest * percent / 100, "share")
        return self._record(log, reported, start_seconds)

    def _scored_request_count(self, rate: float) -> int:
        # Runs at all shares of the highest rate must fit in the budget together.
        times = sum(100 / percent for percent in {*self._requests.load_percents, 100})
        count = (1 - _SEARCH_SHARE) * self._budget_seconds * rate / times
        return max(self._fewest, round(count))

    def _run_at_rate(self, rate: float, purpose: Purpose) -> None:
        if purpose == "scored":
            self._scored_count = self._scored_request_count(rate)
        request = LoadGenRequest(
            scenario="server",
            minimum_seconds=BOUNDS_LONG[purpose] * self._requests.first_token_ms / 1e3,
            minimum_queries=self._search_count if purpose == "search" else self._scored_count,
            queries_per_second=rate,
            examples=len(self._engine.answer_tokens),
            bound_seconds=self._requests.first_token_ms / 1e3,
            token_bound_seconds=self._requests.token_ms / 1e3,
            percentile=self._requests.percentile / 100,
            trace=True,
        )
        self._log = answer_while(
            self._engine,
            lambda issue: run_loadgen(request, issue, self._folder),
            Answers(self._answered),
        )
        prompts, answers = self._engine.prompt_tokens, self._engine.answer_tokens
        tokens = _token_run_record(self._log, prompts, answers, keep_latencies=purpose != "search")
        record = run_record(self._log, purpose, request.minimum_seconds, rate)
        kept_bound = tokens.keeps(self._requests)
        self._runs.append(record.model_copy(update={"tokens": tokens, "kept_bound": kept_bound}))


# Both events of a sample state its scheduled time.
_FIRST_TOKEN = re.compile(
    rb'"Token_Latency".*?"ts":([\d.]+).*?"issue_delay":(\d+),"issue_to_done":(\d+)'
)
_ANSWER = re.compile(rb'"Sample".*?"ts":([\d.]+).*?"sample_idx":(\d+).*?"complete_ns":(\d+)')


# Keys of both latencies in LoadGen's log, see ``loadgen.latency_record``.
_FIRST_KEYS = ("first_token_{}_latency_ns", "first_token_{}_percentile_latency")
_FURTHER_KEYS = ("time_to_output_token_{}", "time_per_output_token_{}_percentile")


def _token_run_record(
    log: LoadGenLog,
    prompt_tokens: Sequence[int],
    answer_tokens: Sequence[int],
    *,
    keep_latencies: bool,
) -> TokenRun:
    first = {
        arrival: int(delay) + int(duration)
        for arrival, delay, duration in _FIRST_TOKEN.findall(log.trace)
    }
    requests = [
        (int(number), first[arrival], int(duration))
        for arrival, number, duration in _ANSWER.findall(log.trace)
        if arrival in first
    ]
    if len(requests) != log.values["result_query_count"]:
        raise TrialFailed("LoadGen: expected the first token of every request in its trace")
    further = tuple((end - begin) // (answer_tokens[number] - 1) for number, begin, end in requests)
    return TokenRun(
        first=latency_record(log.values, *_FIRST_KEYS),
        further=latency_record(log.values, *_FURTHER_KEYS),
        read=sum(prompt_tokens[number] for number, _, _ in requests),
        written=sum(answer_tokens[number] for number, _, _ in requests),
        first_nanoseconds=tuple(begin for _, begin, _ in requests) if keep_latencies else (),
        further_nanoseconds=further if keep_latencies else (),
    )
