"""Everything that only a GPU can show, in stages that can be cut short and begun again.

    python benchmarks/cuda_proof.py FOLDER [STAGE …] [--hardware h200-sxm-share]
                                    [--limit-seconds 480] [--models mnist-cnn …] [--again]
    python benchmarks/cuda_proof.py FOLDER --report

Run it from the repository's root with an interpreter that has epochcost, `requirements/gpu.txt`
and, for gradients and steps, a PyTorch for CUDA. The stages are in order of worth (--help lists
them); each consists of cases, and each case is a process of its own, whose end FOLDER keeps: what
is kept is not run again, but with --again where it failed. After the limit no further case begins
and the one under way is stopped; runs of trials keep what they finished and go on from there.
Results of trials come to FOLDER/results, ratios to PyTorch to FOLDER/steps.json. --report prints
what is known as Markdown. Of several GPUs the first that CUDA_VISIBLE_DEVICES leaves is proved.

`--provider cpu` rehearses it on a machine without a GPU; its figures mean nothing. Without a usable
GPU the script says in one line what is missing and ends with exit code 3; with cases that failed it
ends with 1, and with cases that are left, with 4.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from cuda_stages import BENCHMARKS, STAGES, Asked, Case, Stage, device_case

from epochcost.results.files import write_atomically
from epochcost.specs.loader import load_catalogue

ROOT = BENCHMARKS.parent
NO_DEVICE, FAILED, LEFT = 3, 1, 4
_LAST_WORDS = 4000
# What a run of trials takes to put away what it has.
_STOP_SECONDS = 20
# Loading CUDA's libraries from a cold disk takes a minute.
_DEVICE_SECONDS = 240


@dataclass(frozen=True)
class Outcome:
    """How a case ended; ``said`` are the last words of its standard output, or of its errors."""

    command: tuple[str, ...]
    exit_code: int
    seconds: float
    said: str


class Kept:
    """The outcomes in a folder, one file each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, stage: str, case: Case) -> Outcome | None:
        """That of a case; None where it was not run, or not with this command."""
        path = self._path(stage, case)
        found = Outcome(**json.loads(path.read_text("utf-8"))) if path.is_file() else None
        return found if found and tuple(found.command[1:]) == case.command[1:] else None

    def keep(self, stage: str, case: Case, outcome: Outcome) -> None:
        """Write it whole or not at all."""
        path = self._path(stage, case)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(asdict(outcome), indent=1).encode() + b"\n")

    def _path(self, stage: str, case: Case) -> Path:
        return self._folder / stage / f"{case.key}.json"


def run(case: Case, most_seconds: float) -> Outcome | None:
    """Run a case; None where the time was over before it ended."""
    begun = time.monotonic()
    path = os.pathsep.join([str(BENCHMARKS), *filter(None, [os.environ.get("PYTHONPATH")])])
    process = subprocess.Popen(
        case.command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        cwd=ROOT,
    )
    try:
        said, complaint = process.communicate(timeout=most_seconds)
    except subprocess.TimeoutExpired:
        _stop(process)
        return None
    words = (said if process.returncode == 0 else said + complaint).strip()
    seconds = round(time.monotonic() - begun, 1)
    return Outcome(case.command, process.returncode, seconds, words[-_LAST_WORDS:])


def _stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.communicate(timeout=_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


def prove(asked: Asked, names: list[str], limit_seconds: float, *, again: bool) -> int:
    """Run what is not kept, and say of each case how it ended; returns the exit code."""
    ends, kept, failed = time.monotonic() + limit_seconds, Kept(asked.folder), 0
    for name in names:
        print(f"{name}: {STAGES[name].asks}", flush=True)
        for case in STAGES[name].cases(asked):
            outcome = kept.find(name, case)
            if outcome is None or (again and outcome.exit_code):
                left = ends - time.monotonic()
                outcome = run(case, left) if left > 0 else None
                if outcome is None:
                    print(f"  {case.key}: stopped after {limit_seconds:.0f} s; begin again")
                    return LEFT
                kept.keep(name, case, outcome)
            failed += outcome.exit_code != 0
            print(f"  {case.key}: {_end(outcome)}", flush=True)
    return FAILED if failed else 0


def _end(outcome: Outcome) -> str:
    if outcome.exit_code == 0:
        return f"{outcome.seconds:.0f} s"
    words = outcome.said.splitlines()[-1:] or ["nothing was said"]
    return f"failed with {outcome.exit_code}: {words[0]:.160}"


def report(asked: Asked, names: list[str]) -> Iterator[str]:
    """What is known of each stage, as Markdown."""
    kept = Kept(asked.folder)
    for name in names:
        stage = STAGES[name]
        cases = [*stage.cases(asked)]
        found = [(case, outcome) for case in cases if (outcome := kept.find(name, case))]
        yield f"## {name}: {stage.asks}\n\n{len(found)} of {len(cases)} cases.\n"
        yield from _sound(stage, [outcome.said for _, outcome in found if not outcome.exit_code])
        for case, outcome in found:
            if outcome.exit_code:
                yield f"- {case.key}: {_end(outcome)}\n"


def _sound(stage: Stage, said: list[str]) -> Iterator[str]:
    if said and stage.header:
        rows = [" | ".join(stage.header), " | ".join("---" for _ in stage.header)]
        yield "\n".join([*(f"| {row} |" for row in rows), *said]) + "\n"
        return
    for words in said:
        yield f"```\n{words}\n```\n"


def main() -> int:
    """Run the stages, or print what is known."""
    given = _options()
    names = given.stages or [*STAGES]
    asked = Asked(
        load_catalogue(ROOT),
        given.folder.resolve(),
        given.provider,
        given.hardware,
        tuple(given.models),
    )
    if given.report:
        print("\n".join(report(asked, names)))
        return 0
    device = run(device_case(asked), _DEVICE_SECONDS)
    if device is None or device.exit_code:
        print(device.said if device else "the device did not answer in time", file=sys.stderr)
        return NO_DEVICE
    print(device.said, flush=True)
    return prove(asked, names, given.limit_seconds, again=given.again)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="\n".join(f"{name:12}{stage.asks}" for name, stage in STAGES.items()),
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("stages", nargs="*", metavar="STAGE", help="default: all")
    parser.add_argument("--provider", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--hardware", default="local", help="the machine that this one is")
    parser.add_argument("--models", nargs="+", default=[], help="default: all")
    parser.add_argument("--limit-seconds", type=float, default=480, help="of all together")
    parser.add_argument("--again", action="store_true", help="cases that failed, too")
    parser.add_argument("--report", action="store_true", help="print what is known")
    given = parser.parse_args()
    unknown = [name for name in given.stages if name not in STAGES]
    if unknown:
        parser.error(f"expected stages of {', '.join(STAGES)}, got {', '.join(unknown)}")
    return given


if __name__ == "__main__":
    raise SystemExit(main())
