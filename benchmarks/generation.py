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
on PYTHONPATH. All engines get the same weights, drawn from a seed, and the same prompts; each is a
process of its own and they take turns, a prompt and its answer at a time. An engine whose logits
after the prompt and after one more token are not ours is not timed. All choose the most likely
token within the time. The context of our timed decode is that of the middle of the others' answers.
In int4 there is no transformers.

Printed are medians over rounds, how many times as fast we are (round by round, their median), and
what part of copying memory our decode reaches: weights and caches, in bytes a second, over the
bytes that a copy reads and writes. Reading alone may be faster than copying.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

from generators import genai, ours
from generators.case import SEED, Case
from generators.turns import Rounds, compared_and_timed
from steps.ceilings import measure_ceilings

from epochcost import __version__
from epochcost.cli.bundled import own_catalogue
from epochcost.execute.build import build_job
from epochcost.execute.decoding import decoder_size
from epochcost.graphs.loading import load_model
from epochcost.measure.runtime import runtime_name
from epochcost.plan.trial import Phase, Trial
from epochcost.specs.catalogue import Catalogue

_MODELS = ("gpt2-decoder", "smollm2-135m", "qwen2.5-0.5b")
_OTHERS = ("genai", "eager")
_HEAD = (
    *("model", "batch", "phase", "ours", "genai", "over genai"),
    *("transformers", "over transformers", "of copying"),
)


def main() -> int:
    """Compare, and print a row as soon as it is known."""
    asked = _options()
    print(_row(_HEAD))
    print(_row(["---"] * len(_HEAD)))
    for name in asked.models:
        with tempfile.TemporaryDirectory() as folder:
            _compare(own_catalogue(), name, asked, Path(folder))
    return 0


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


def _compare(catalogue: Catalogue, name: str, asked: argparse.Namespace, folder: Path) -> None:
    decoder = catalogue.model(name).decoder
    if decoder is None:
        sys.exit(f"{name}: expected a decoder, got another model")
    first = Case(
        model=name,
        graph=str(catalogue.graph_path(catalogue.model(name)).resolve()),
        vocabulary=decoder.vocabulary,
        precision=asked.precision,
        batch=1,
        prompt=asked.prompt,
        tokens=asked.tokens,
        threads=asked.threads,
    )
    genai.write(first, decoder, folder)
    engines = ("ours", *(one for one in _OTHERS if asked.precision == "fp32" or one == "genai"))
    for batch in asked.batches:
        case = replace(first, batch=batch)
        place = folder / str(batch)
        _prepare(catalogue, case, place)
        copied = measure_ceilings(case.threads)["copy_bytes"]
        rounds = compared_and_timed(engines, place, asked.rounds)
        share = _moved(catalogue, case) / statistics.median(rounds["ours"]["decode"]) / copied
        for row in _rows(case, rounds, share):
            print(_row(row), flush=True)


def _prepare(catalogue: Catalogue, case: Case, folder: Path) -> None:
    """Write the case and our jobs."""
    folder.mkdir()
    case.save(folder)
    model = catalogue.model(case.model)
    phases = {
        ours.PREFILL: Phase(name="prefill", tokens=case.prompt),
        ours.COMPARED: Phase(name="decode", tokens=case.prompt),
        ours.TIMED: Phase(name="decode", tokens=case.middle),
    }
    for name, phase in phases.items():
        target = folder / name
        target.mkdir()
        job = build_job(_trial(case, phase), model, Path(case.graph), target)
        (target / "job.json").write_text(job.model_dump_json(), "utf-8")


def _trial(case: Case, phase: Phase) -> Trial:
    return Trial(
        model=case.model,
        mode="inference",
        provider="cpu",
        precision=case.precision,
        batch_size=case.batch,
        phase=phase,
        threads=case.threads,
        seed=SEED,
        runtime=runtime_name(),
        producer=__version__,
        graph_sha256=hashlib.sha256(Path(case.graph).read_bytes()).hexdigest(),
        spec_sha256="0" * 64,
        relative_half_width=Decimal("0.02"),
        minimum_samples=10,
        budget_seconds=Decimal(1),
    )


def _moved(catalogue: Catalogue, case: Case) -> int:
    """Bytes that our timed decode moves at least."""
    size = decoder_size(catalogue.model(case.model), load_model(Path(case.graph)))
    return size.decode_bytes(case.batch, case.middle + 1, int4=case.precision == "int4")


def _rows(case: Case, rounds: Rounds, share: float) -> Iterator[list[str]]:
    titles = {"prefill": f"prefill of {case.prompt}", "decode": f"decode at {case.middle}"}
    for phase, title in titles.items():
        mine = rounds["ours"][phase]
        cells = [f"{case.model} {case.precision}", str(case.batch), title, _milliseconds(mine)]
        for other in _OTHERS:
            cells += _beside(rounds.get(other, {}), phase, mine)
        yield [*cells, f"{share:.0%}" if phase == "decode" else ""]


def _beside(theirs: Mapping[str, Sequence[float]], phase: str, mine: Sequence[float]) -> list[str]:
    """Another's time, and how many times as fast we are."""
    if phase not in theirs:
        return ["", ""]
    ratio = statistics.median(b / a for a, b in zip(mine, theirs[phase], strict=True))
    return [_milliseconds(theirs[phase]), f"{ratio:.3f}"]


def _milliseconds(seconds: Sequence[float]) -> str:
    return f"{1000 * statistics.median(seconds):.4g} ms"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
