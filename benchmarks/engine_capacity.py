# /// script
# requires-python = ">=3.11"
# dependencies = ["epochcost[run]", "onnxruntime-genai==0.18.0"]
# ///
"""What an engine answers at full load beside what the phases say, and where the rest goes.

    pip install onnxruntime-genai==0.18.0
    python benchmarks/engine_capacity.py [--models smollm2-135m …] [--rounds 7]

Install beside epochcost's dependencies for runs, and run it from the repository's root with runner/
and runner/onnxstep/ on PYTHONPATH. Of each committed result behind the engine the very requests are
asked again, four at once with nobody waiting. Three things take turns: our own phases of four
sequences, the engine with four requests of equal lengths, and the engine with four drawn ones.

The engine reads prompts as long as the longest of the four, and answers as often as the longest
answer asks. From the lengths alone follows how much that is (`padding`): a sum over batches of what
is done over a sum over requests of what is asked, weighed with our phases. What equal requests take
over our phases is what the engine itself adds (`engine`), with its parts until all have a first
token (`reading`: it scores every position of a prompt) and from there on (`writing`). Padding and
engine together should be what drawn ones take over the phases (`full load`); `left` is what neither
explains.
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
    """Seconds of four sequences: for a token of the prompts, and for one more token each."""

    read: float
    write: float


def main() -> None:
    """Print a row for each decoder that was measured behind the engine."""
    if sys.argv[1:2] == ["--serve"]:
        _serve(Path(sys.argv[2]))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=[])
    parser.add_argument("--rounds", type=int, default=7)
    asked = parser.parse_args()
    print(f"| {' | '.join(_HEAD)} |\n|{' --- |' * len(_HEAD)}", flush=True)
    for trial in _trials(asked.models):
        with tempfile.TemporaryDirectory() as folder:
            cells = _compared(trial, Path(folder), asked.rounds)
        named = f"{trial.model} {trial.precision}"
        print(f"| {named} | {' | '.join(f'{one:.3f}' for one in cells)} |", flush=True)


def _trials(models: Sequence[str]) -> Iterator[Trial]:
    """Those of the committed results."""
    known = {
        (one.trial.model, one.trial.precision): one.trial
        for one in load_all(ROOT / "docs/data/results").results
        if isinstance(one.trial.work, Requests)
    }
    return (trial for (model, _), trial in sorted(known.items()) if not models or model in models)


def _compared(trial: Trial, folder: Path, rounds: int) -> tuple[float, ...]:
    """The columns but the first: medians over rounds."""
    catalogue = load_catalogue(ROOT)
    model = catalogue.model(trial.model)
    # The engine is in this environment, with the runtime that is installed here.
    here = trial.model_copy(update={"runtime": runtime_name()})
    job = build_job(here, model, catalogue.graph_path(model), folder)
    lengths = _make_first_equal(job)
    (folder / "job.json").write_text(job.model_dump_json(), "utf-8")
    equal = Lengths(*(tuple(one[:ENGINE_SEQUENCES]) for one in lengths))
    prompt, answer = equal.prompts[0], equal.answers[0]
    case = Case(trial.model, trial.precision, ENGINE_SEQUENCES, prompt, answer, _THREADS)
    rows = []
    with (
        closing(engine_process("ours", case, folder)) as ours,
        closing(Process("engine", "engine_capacity", "--serve", folder)) as engine,
    ):
        for index in range(rounds + 1):
            batches = [_batch(index * _BATCHES + number) for number in range(_BATCHES)]
            drawn = [Lengths(*(tuple(one[at] for at in b) for one in lengths)) for b in batches]
            phases = ours.answer()
            times = Times(phases["prefill"] / prompt, phases["decode"])
            alike = engine.answer(json.dumps([[*_EQUAL]]))
            full = engine.answer(json.dumps([[*one] for one in batches]))
            rows.append(_ratios(times, equal, alike, drawn, sum(full.values())))
    # The first round is a warm-up.
    return tuple(statistics.median(column) for column in zip(*rows[1:], strict=True))


def _make_first_equal(job: Job) -> tuple[list[int], list[int]]:
    """Give the first four requests the median lengths; tokens of prompts and answers of all."""
    with np.load(job.batches) as archive:
        arrays = dict(archive)
    for name in ("prompt_tokens", "answer_tokens"):
        arrays[name][:ENGINE_SEQUENCES] = round(float(np.median(arrays[name])))
    np.savez(job.batches, **arrays)
    return arrays["prompt_tokens"].tolist(), arrays["answer_tokens"].tolist()


def _batch(number: int) -> range:
    """Four requests behind the equal ones."""
    return range((number + 1) * ENGINE_SEQUENCES, (number + 2) * ENGINE_SEQUENCES)


def _ratios(
    times: Times,
    equal: Lengths,
    alike: Mapping[str, float],
    drawn: Sequence[Lengths],
    full: float,
) -> tuple[float, ...]:
    asked = sum(_of_phases(times, one) for one in drawn)
    done = sum(_of_whole_batches(times, one) for one in drawn)
    padding, engine = done / asked, sum(alike.values()) / _of_whole_batches(times, equal)
    reading = alike["reading"] / (times.read * equal.prompts[0])
    writing = alike["writing"] / (times.write * (equal.answers[0] - 1))
    return full / asked, padding, engine, full / asked / padding / engine, reading, writing


def _of_phases(times: Times, asked: Lengths) -> float:
    """Four sequences are always in work: each takes a quarter of its tokens' time.

    The first token of an answer comes with the prompt.
    """
    written = sum(asked.answers) - len(asked.answers)
    return (times.read * sum(asked.prompts) + times.write * written) / ENGINE_SEQUENCES


def _of_whole_batches(times: Times, asked: Lengths) -> float:
    """All four wait for the longest prompt and the longest answer."""
    return times.read * max(asked.prompts) + times.write * (max(asked.answers) - 1)


def _serve(folder: Path) -> None:
    """The engine's process: answers batches of numbers, a line each; seconds of them all."""
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
    """Seconds until each request has a first token, and from there until all are answered."""
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


def _say(**said: Any) -> None:
    print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
