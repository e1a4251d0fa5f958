# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "epochcost[run]", "torch==2.13.0", "transformers==5.23.0", "onnxruntime-genai==0.18.0",
# ]
# ///
"""Our prefill and decode against onnxruntime-genai's Generator and transformers' eager mode.

    pip install torch==2.13.0 transformers onnxruntime-genai==0.18.0
    python benchmarks/generation.py [--models smollm2-135m …] [--batches 1 4] [--precision int4]

Install beside epochcost's dependencies for runs, and run it from the repository's root with runner/
and runner/onnxstep/ on PYTHONPATH. All engines get the same weights, drawn from a seed, and the
same prompts; each is a process of its own, so that no idle threads spin beside what is timed, and
they take turns, a prompt and its answer at a time. An engine whose logits after the prompt and
after one more token are not ours is not timed. In int4 there is no transformers.

Printed are medians over rounds, how many times as fast we are (round by round, their median), and
what part of copying memory our decode reaches: weights and caches, in bytes a second, over the
bytes that a copy reads and writes. Reading alone may be faster than copying. Run it on a machine
that does nothing else: beside others PyTorch's threads, which wait for each other after every
operator, lose several times as much as ONNX Runtime's, and all ratios wander. All of it takes about
a quarter of an hour on two CPUs, and 16 GB of memory.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict
from pathlib import Path

import numpy as np
from generation_engines import Case
from steps.ceilings import measure_ceilings

from epochcost.execute.decoding import decoder_size
from onnxstep.graphs.loading import load_model

# Seconds by phase, one figure a round.
Seconds = Mapping[str, Sequence[float]]
_OURS, _OTHERS = "ours", ("genai", "transformers")
_MODELS = ("gpt2-decoder", "smollm2-135m", "qwen2.5-0.5b")
_HEAD = (
    *("model", "batch", "phase", "ours", "genai", "over genai"),
    *("transformers", "over transformers", "of copying"),
)
# An engine's threads go on spinning for a moment after its turn; the next one waits that out.
_PAUSE_SECONDS = 0.25
# Rounding of float32 leaves logits about 1e-5 apart in norm; 8 bits of activations leave more.
_MOST_APART = {"fp32": 1e-4, "int4": 3e-2}


class Process:
    """An engine's process, ready when it is made: ``python -m`` with the ``arguments``."""

    def __init__(self, engine: str, *arguments: str | Path) -> None:
        self.engine = engine
        path = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(
            [sys.executable, "-m", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
        )
        self._line()

    def answer(self, asked: str = "") -> dict[str, float]:
        """Seconds by phase, for a line of what is asked."""
        assert self._process.stdin is not None
        time.sleep(_PAUSE_SECONDS)
        self._process.stdin.write(f"{asked}\n")
        self._process.stdin.flush()
        seconds: dict[str, float] = json.loads(self._line())
        return seconds

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            sys.exit(f"{self.engine}: ended early, exit {self._process.wait()}")
        return line


def engine_process(name: str, case: Case, folder: Path) -> Process:
    """One of ``generation_engines``."""
    return Process(name, "generation_engines", name, json.dumps(asdict(case)), folder)


def main() -> None:
    """Compare, and print a row as soon as it is known."""
    asked = _options()
    for row in (_HEAD, ["---"] * len(_HEAD)):
        print(_row(row), flush=True)
    for name in asked.models:
        # Batches of a model share what is written for genai.
        with tempfile.TemporaryDirectory() as folder:
            for batch in asked.batches:
                sizes = (batch, asked.prompt, asked.tokens, asked.threads)
                case, place = Case(name, asked.precision, *sizes), Path(folder, str(batch))
                place.mkdir()
                _compare(case, place, asked.rounds)


def _compare(case: Case, folder: Path, rounds: int) -> None:
    before = measure_ceilings(case.threads)["copy_bytes"]
    found = _timed(case, folder, rounds)
    copied = max(before, measure_ceilings(case.threads)["copy_bytes"])
    for row in _rows(case, found, copied):
        print(_row(row), flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", nargs="+", default=list(_MODELS))
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 4])
    parser.add_argument("--precision", choices=("fp32", "int4"), default="fp32")
    parser.add_argument("--prompt", type=int, default=256, help="tokens of each prompt")
    parser.add_argument("--tokens", type=int, default=32, help="tokens of each answer")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    return parser.parse_args()


def _timed(case: Case, folder: Path, rounds: int) -> dict[str, Seconds]:
    """By engine, without those that compute something else; exits where one fails."""
    others = _OTHERS if case.precision == "fp32" else _OTHERS[:1]
    with ExitStack() as running:
        every = [
            running.enter_context(closing(engine_process(one, case, folder)))
            for one in (_OURS, *others)
        ]
        engines = [one for one in every if _is_alike(one.engine, case, folder)]
        taken: dict[str, list[dict[str, float]]] = {one.engine: [] for one in engines}
        for index in range(rounds + 1):
            for one in engines if index % 2 else reversed(engines):
                taken[one.engine].append(one.answer())
    # The first round is a warm-up.
    return {
        engine: {phase: [each[phase] for each in answers[1:]] for phase in answers[0]}
        for engine, answers in taken.items()
    }


def _is_alike(engine: str, case: Case, folder: Path) -> bool:
    """Whether an engine computes what ours does; says how far it is from it."""
    mine, theirs = (np.load(folder / f"{name}.npy") for name in (_OURS, engine))
    apart = float(np.linalg.norm(theirs - mine) / np.linalg.norm(mine))
    same = float(np.mean(theirs.argmax(axis=-1) == mine.argmax(axis=-1)))
    alike = apart <= _MOST_APART[case.precision]
    if engine != _OURS:
        said = f"{engine}: logits {apart:.1e} from ours, {same:.0%} of tokens the same"
        print(said if alike else f"{said}: not timed", file=sys.stderr)
    return alike


def _rows(case: Case, found: Mapping[str, Seconds], copied: float) -> Iterator[list[str]]:
    titles = {"prefill": f"prefill of {case.prompt}", "decode": f"decode at {case.middle}"}
    for phase, title in titles.items():
        mine = found[_OURS][phase]
        cells = [f"{case.model} {case.precision}", str(case.batch), title, _milliseconds(mine)]
        for other in _OTHERS:
            theirs = found.get(other, {}).get(phase)
            cells += [_milliseconds(theirs), _times(mine, theirs)] if theirs else ["", ""]
        yield [*cells, _share(case, mine, copied) if phase == "decode" else ""]


def _times(mine: Sequence[float], theirs: Sequence[float]) -> str:
    """How many times as fast we are."""
    return f"{statistics.median(b / a for a, b in zip(mine, theirs, strict=True)):.3f}"


def _share(case: Case, seconds: Sequence[float], copied: float) -> str:
    """The bytes that our decode moves at least, over the ``copied`` of a copy as long."""
    size = decoder_size(case.spec, load_model(case.graph))
    moved = size.decode_bytes(case.batch, case.middle + 1, int4=case.precision == "int4")
    rate = moved / statistics.median(seconds)
    return f"{rate / copied:.0%} of {copied / 1e9:.0f} GB/s"


def _milliseconds(seconds: Sequence[float]) -> str:
    return f"{1000 * statistics.median(seconds):.4g} ms"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
