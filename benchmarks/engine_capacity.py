# /// script
# requires-python = ">=3.11"
# dependencies = ["epochcost[run]", "onnxruntime-genai==0.18.0"]
# ///
"""Throughput of an engine at full load against epochcost's phases, and why they differ.

    pip install onnxruntime-genai==0.18.0
    python benchmarks/engine_capacity.py [--models smollm2-135m …] [--rounds 7]

Install this package in addition to epochcost's dependencies for runs, and run the script from the
repository's root with runner/ and runner/onnxstep/ on PYTHONPATH. The requests of each committed
result of the engine are sent again, four at once. Three workloads alternate: epochcost's phases of
four sequences, the engine with four requests of equal lengths, and the engine with four requests of
drawn lengths.

The engine pads the prompts to the longest of the four, and generates until the longest answer is
complete. `padding` is the resulting factor: tokens computed over tokens requested, weighted by the
times of the phases. `engine` is the engine's time for equal requests over the time of the phases,
split into `reading` until the first tokens (the engine scores every position of a prompt) and
`writing` afterwards. `padding` times `engine` should equal `full load`, the engine's time for drawn
requests over the time of the phases; `left` is the remainder.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from generation import Process, engine_process
from generation_engines import Case

from epochcost.execute.build import build_job
from epochcost.measure.job import AskedDecoder, Job
from epochcost.measure.runtime import runtime_name
from epochcost.plan.trial import Trial
from epochcost.plan.work import ENGINE_SEQUENCES, Requests
from epochcost.results.store import load_all
from epochcost.specs.loader import load_catalogue

ROOT = Path.cwd()
_EQUAL = range(ENGINE_SEQUENCES)
_BATCHES = 6
_THREADS = len(os.sched_getaffinity(0))
_HEAD = ("model", "full load over phases", "padding", "engine", "left", "reading", "writing")


class Lengths(NamedTuple):
    """Tokens of the prompts and answers of a batch."""

    prompts: tuple[int, ...]
    answers: tuple[int, ...]


class Times(NamedTuple):
    """Seconds of four sequences at once: by token of each prompt, by later token of each answer."""

    read: float
    write: float


def main() -> None:
    """Print a row for each decoder that has committed results of the engine."""
    if sys.argv[1:2] == ["--serve"]:
        _serve(Path(sys.argv[2]))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=[])
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    print(f"| {' | '.join(_HEAD)} |\n|{' --- |' * len(_HEAD)}", flush=True)
    for trial in _trials(options.models):
        with tempfile.TemporaryDirectory() as folder:
            cells = _compared(trial, Path(folder), options.rounds)
        named = f"{trial.model} {trial.precision}"
        print(f"| {named} | {' | '.join(f'{cell:.3f}' for cell in cells)} |", flush=True)


def _trials(models: Sequence[str]) -> Iterator[Trial]:
    trials = {
        (result.trial.model, result.trial.precision): result.trial
        for result in load_all(ROOT / "docs/data/results").records.values()
        if isinstance(result.trial.work, Requests)
    }
    return (trial for (model, _), trial in sorted(trials.items()) if not models or model in models)


def _compared(trial: Trial, folder: Path, rounds: int) -> tuple[float, ...]:
    """All columns but the first: medians over rounds."""
    catalogue = load_catalogue(ROOT)
    model = catalogue.model(trial.model)
    # The engine runs in this environment, with the installed runtime.
    here = trial.model_copy(update={"runtime": runtime_name()})
    job = build_job(here, model, catalogue.graph_path(model), folder)
    lengths = _make_first_equal(job)
    (folder / "job.json").write_text(job.model_dump_json(), "utf-8")
    equal = Lengths(*(tuple(column[:ENGINE_SEQUENCES]) for column in lengths))
    prompt, answer = equal.prompts[0], equal.answers[0]
    case = Case(trial.model, trial.precision, ENGINE_SEQUENCES, prompt, answer, _THREADS)
    rows = []
    with (
        closing(engine_process("ours", case, folder)) as ours,
        closing(Process("engine", "engine_capacity", "--serve", folder)) as engine,
    ):
        for index in range(rounds + 1):
            batches = [_batch(index * _BATCHES + number) for number in range(_BATCHES)]
            drawn = [
                Lengths(*(tuple(column[at] for at in b) for column in lengths)) for b in batches
            ]
            phases = ours.seconds()
            times = Times(phases["prefill"] / prompt, phases["decode"])
            alike = engine.seconds(json.dumps([[*_EQUAL]]))
            full = engine.seconds(json.dumps([[*batch] for batch in batches]))
            rows.append(_ratios(times, equal, alike, drawn, sum(full.values())))
    # The first round is a warm-up.
    return tuple(statistics.median(column) for column in zip(*rows[1:], strict=True))


def _make_first_equal(job: Job) -> tuple[list[int], list[int]]:
    """Give the first four requests the median lengths; returns the tokens of all requests."""
    with np.load(job.batches) as archive:
        arrays = dict(archive)
    for name in ("prompt_tokens", "answer_tokens"):
        arrays[name][:ENGINE_SEQUENCES] = round(float(np.median(arrays[name])))
    np.savez(job.batches, **arrays)
    return arrays["prompt_tokens"].tolist(), arrays["answer_tokens"].tolist()


def _batch(number: int) -> range:
    return range((number + 1) * ENGINE_SEQUENCES, (number + 2) * ENGINE_SEQUENCES)


def _ratios(
    times: Times, equal: Lengths, alike: Mapping[str, float], drawn: Sequence[Lengths], full: float
) -> tuple[float, ...]:
    phases = sum(_of_phases(times, batch) for batch in drawn)
    whole = sum(_of_whole_batches(times, batch) for batch in drawn)
    padding, engine = (whole / phases, sum(alike.values()) / _of_whole_batches(times, equal))
    reading = alike["reading"] / (times.read * equal.prompts[0])
    writing = alike["writing"] / (times.write * (equal.answers[0] - 1))
    return (full / phases, padding, engine, full / phases / padding / engine, reading, writing)


def _of_phases(times: Times, requests: Lengths) -> float:
    """Seconds of requests if four sequences are always in work.

    Each request takes a quarter of the time of its tokens. The first token of an answer is part of
    the prompt's time.
    """
    written = sum(requests.answers) - len(requests.answers)
    return (times.read * sum(requests.prompts) + times.write * written) / ENGINE_SEQUENCES


def _of_whole_batches(times: Times, requests: Lengths) -> float:
    """Seconds if all four requests wait for the longest prompt and the longest answer."""
    return times.read * max(requests.prompts) + times.write * (max(requests.answers) - 1)


def _serve(folder: Path) -> None:
    """Serve as the engine's process: answer each line of batches of requests with seconds."""
    from epochcost.measure.engine import DecoderEngine

    job = Job.model_validate_json((folder / "job.json").read_text("utf-8"))
    assert isinstance(job.serving, AskedDecoder), "the job is of requests"
    place = folder / "engine"
    place.mkdir()
    engine = DecoderEngine(job, job.serving, place)
    _say(ready=True)
    for line in sys.stdin:
        parts = [_answered(engine, numbers) for numbers in json.loads(line)]
        reading, writing = (sum(column) for column in zip(*parts, strict=True))
        _say(reading=reading, writing=writing)


def _answered(engine: Any, numbers: Sequence[int]) -> tuple[float, float]:
    """Seconds until every request has a first token, and from then on until the last answer."""
    begun = time.perf_counter()
    for number in numbers:
        engine.begin(number)
    begin, read = 0, begun
    while engine.busy:
        first, _ = engine.step()
        begin += len(first)
        if first and begin == len(numbers):
            read = time.perf_counter()
    return read - begun, time.perf_counter() - read


def _say(**fields: Any) -> None:
    print(json.dumps(fields), flush=True)


if __name__ == "__main__":
    main()
