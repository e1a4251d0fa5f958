# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "epochcost[run]", "torch==2.13.0", "transformers==5.23.0", "onnxruntime-genai==0.18.0",
#   "llama-cpp-python==0.3.36", "gguf",
# ]
# ///
"""epochcost's prefill and decode against onnxruntime-genai, transformers and llama.cpp.

    pip install torch==2.13.0 transformers onnxruntime-genai==0.18.0 llama-cpp-python==0.3.36 gguf
    python benchmarks/generation.py [--models smollm2-135m …] [--batches 1 4] [--precision int4]

Install these packages in addition to epochcost's dependencies for runs, and run the script from the
repository's root with runner/ and runner/onnxstep/ on PYTHONPATH. All engines get the same weights,
drawn from a seed, and the same prompts; transformers runs in eager mode. Each engine runs in a
separate process, so that idle threads do not spin during timing. The engines alternate after each
prompt with its answer. An engine is not timed if its logits differ from epochcost's after the
prompt or after one more token. In int4, only onnxruntime-genai is compared. llama.cpp is compared
for models with rotary positions.

Prints medians over rounds, the median ratio of each engine's time to epochcost's time, and the
share of the memory bandwidth that epochcost's decode reaches. This share is the bytes of weights
and caches per second, divided by the bytes per second that a copy reads and writes. Pure reading
may be faster than copying. Run the script on an idle machine: under load PyTorch's threads, which
synchronise after every operator, slow down several times as much as ONNX Runtime's. The script
takes about a quarter of an hour on two CPUs, and 16 GB of memory.
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
from contextlib import ExitStack, closing
from dataclasses import asdict
from pathlib import Path

import numpy as np
from generation_engines import Case
from line_process import LineProcess
from steps.ceilings import measure_ceilings

from epochcost.execute.sizing import decoder_weights
from epochcost.graphs.weight_bits import BYTES_PER_WEIGHT
from onnxstep.graphs.loading import load_model

# Seconds by phase, one number a round.
Seconds = Mapping[str, Sequence[float]]
_OURS, _OTHERS = "ours", ("genai", "transformers", "llama.cpp")
_WITHOUT_ROTATION = "gpt2-decoder"
_MODELS = ("gpt2-decoder", "smollm2-135m", "qwen2.5-0.5b")
_HEAD = (
    *("model", "batch", "phase", "ours", "genai", "over genai"),
    *("transformers", "over transformers", "llama.cpp", "over llama.cpp", "of copying"),
)
# The next engine waits until the threads of the previous one stop spinning.
_PAUSE_SECONDS = 0.25
# Rounding of float32 leaves logits about 1e-5 apart in norm; 8 bits of activations leave more.
_MOST_APART = {"fp32": 1e-4, "int4": 3e-2}


class Process(LineProcess):
    """An engine's process, ready after construction: ``python -m`` with the ``arguments``."""

    def __init__(self, engine: str, *arguments: str | Path) -> None:
        super().__init__(engine, [sys.executable, "-m", *arguments])
        self.answer()

    def seconds(self, line: str = "") -> dict[str, float]:
        """Send a line to the process; returns the seconds of each phase."""
        time.sleep(_PAUSE_SECONDS)
        self.send(line)
        return dict(self.answer())


def engine_process(name: str, case: Case, folder: Path) -> Process:
    """Start an engine of ``generation_engines`` in a process."""
    return Process(name, "generation_engines", name, json.dumps(asdict(case)), folder)


def main() -> None:
    """Compare, and print each row as soon as it is ready."""
    options = _options()
    for row in (_HEAD, ["---"] * len(_HEAD)):
        print(_row(row), flush=True)
    for name in options.models:
        # Batches of a model share the files written for genai.
        with tempfile.TemporaryDirectory() as folder:
            for batch in options.batches:
                sizes = (batch, options.prompt, options.tokens, options.threads)
                case, place = Case(name, options.precision, *sizes), Path(folder, str(batch))
                place.mkdir()
                _compare(case, place, options.rounds)


def _compare(case: Case, folder: Path, rounds: int) -> None:
    before = measure_ceilings(case.threads)["copy_bytes"]
    seconds = _timed(case, folder, rounds)
    copied = max(before, measure_ceilings(case.threads)["copy_bytes"])
    for row in _rows(case, seconds, copied):
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
    """Seconds by engine; exits if an engine fails.

    Engines whose logits differ are left out.
    """
    other_engines = _OTHERS if case.precision == "fp32" else _OTHERS[:1]
    if case.model == _WITHOUT_ROTATION:
        other_engines = other_engines[:2]
    with ExitStack() as running:
        every = [
            running.enter_context(closing(engine_process(process, case, folder)))
            for process in (_OURS, *other_engines)
        ]
        engines = [process for process in every if _is_alike(process.name, case, folder)]
        answers: dict[str, list[dict[str, float]]] = {process.name: [] for process in engines}
        for index in range(rounds + 1):
            for process in engines if index % 2 else reversed(engines):
                answers[process.name].append(process.seconds())
    # The first round is a warm-up.
    return {
        engine: {phase: [each[phase] for each in answers[1:]] for phase in answers[0]}
        for engine, answers in answers.items()
    }


def _is_alike(engine: str, case: Case, folder: Path) -> bool:
    """Whether an engine computes epochcost's logits; prints the difference."""
    mine, theirs = (np.load(folder / f"{name}.npy") for name in (_OURS, engine))
    difference = float(np.linalg.norm(theirs - mine) / np.linalg.norm(mine))
    same = float(np.mean(theirs.argmax(axis=-1) == mine.argmax(axis=-1)))
    alike = difference <= _MOST_APART[case.precision]
    if engine != _OURS:
        text = f"{engine}: logits {difference:.1e} from ours, {same:.0%} of tokens the same"
        print(text if alike else f"{text}: not timed", file=sys.stderr)
    return alike


def _rows(case: Case, seconds: Mapping[str, Seconds], copied: float) -> Iterator[list[str]]:
    titles = {"prefill": f"prefill of {case.prompt}", "decode": f"decode at {case.middle}"}
    for phase, title in titles.items():
        mine = seconds[_OURS][phase]
        cells = [f"{case.model} {case.precision}", str(case.batch), title, _milliseconds(mine)]
        for engine in _OTHERS:
            theirs = seconds.get(engine, {}).get(phase)
            cells += [_milliseconds(theirs), _times(mine, theirs)] if theirs else ["", ""]
        yield [*cells, _share(case, mine, copied) if phase == "decode" else ""]


def _times(mine: Sequence[float], theirs: Sequence[float]) -> str:
    return f"{statistics.median(b / a for a, b in zip(mine, theirs, strict=True)):.3f}"


def _share(case: Case, seconds: Sequence[float], copied: float) -> str:
    """Bytes per second that epochcost's decode reads at least, divided by ``copied``.

    ``copied`` is the bytes per second of a copy.
    """
    assert case.spec.decoder is not None, "the models of this benchmark are decoders"
    weights, _ = decoder_weights(load_model(case.graph))
    cached = case.batch * (case.middle + 1) * case.spec.decoder.cached_numbers_per_token
    moved = weights * (BYTES_PER_WEIGHT if case.precision == "int4" else 4) + 4 * cached
    rate = moved / statistics.median(seconds)
    return f"{rate / copied:.0%} of {copied / 1e9:.0f} GB/s"


def _milliseconds(seconds: Sequence[float]) -> str:
    return f"{1000 * statistics.median(seconds):.4g} ms"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
