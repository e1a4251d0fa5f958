"""Run all measurements that need a GPU, in stages that can be stopped and resumed.

    python benchmarks/cuda_proof.py FOLDER [STAGE …] [--hardware h200-sxm-share]
                                    [--limit-seconds 480] [--models mnist-cnn …] [--again]
    python benchmarks/cuda_proof.py FOLDER --report

Run it from the repository's root with an interpreter that has epochcost, `requirements/gpu.txt`
and, for gradients and steps, PyTorch for CUDA. --help lists the stages, the most valuable first. A
stage consists of cases, each a process whose outcome FOLDER stores. Stored cases are not run again;
--again repeats failed ones. After the limit no further case begins and the running one is stopped;
runs of trials keep finished results and continue from there. Results of trials go to
FOLDER/results, ratios to PyTorch to FOLDER/steps.json. --report prints all outcomes as Markdown.
The first GPU of CUDA_VISIBLE_DEVICES is used.

`--provider cpu` tests the script on a machine without a GPU; its figures mean nothing. Without a
usable GPU the script prints one line with the reason and exits with code 3. It exits with 1 if
cases failed, and with 4 if cases are left.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from cuda_stages import BENCHMARKS, STAGES, Asked, Case, Stage, device_case
from line_process import with_benchmarks

from epochcost.results.files import write_atomically
from epochcost.specs.loader import load_catalogue

ROOT = BENCHMARKS.parent
NO_DEVICE, FAILED, LEFT = 3, 1, 4
_LAST_WORDS = 4000
# Seconds that a run of trials needs to store its results.
_STOP_SECONDS = 20
# Loading CUDA's libraries from a cold disk takes a minute.
_DEVICE_SECONDS = 240


@dataclass(frozen=True)
class Outcome:
    """Result of a case; ``said`` is the end of its output and, after a failure, of its errors."""

    command: tuple[str, ...]
    exit_code: int
    seconds: float
    said: str


class Kept:
    """The stored outcomes of a folder, one file each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, stage: str, case: Case) -> Outcome | None:
        """The outcome of a case; None if the case has not run, or ran with another command."""
        path = self._path(stage, case)
        outcome = Outcome(**json.loads(path.read_text("utf-8"))) if path.is_file() else None
        return outcome if outcome and tuple(outcome.command[1:]) == case.command[1:] else None

    def keep(self, stage: str, case: Case, outcome: Outcome) -> None:
        """Store an outcome atomically."""
        path = self._path(stage, case)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(asdict(outcome), indent=1).encode() + b"\n")

    def _path(self, stage: str, case: Case) -> Path:
        return self._folder / stage / f"{case.key}.json"


def run(case: Case, most_seconds: float) -> Outcome | None:
    """Run a case; returns None if the time is over before the case ends."""
    begun = time.monotonic()
    process = subprocess.Popen(
        case.command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=with_benchmarks(),
        cwd=ROOT,
    )
    try:
        output, complaint = process.communicate(timeout=most_seconds)
    except subprocess.TimeoutExpired:
        _stop(process)
        return None
    text = (output if process.returncode == 0 else output + complaint).strip()
    seconds = round(time.monotonic() - begun, 1)
    return Outcome(case.command, process.returncode, seconds, text[-_LAST_WORDS:])


def _stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.communicate(timeout=_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


def prove(proof: Asked, names: list[str], limit_seconds: float, *, again: bool) -> int:
    """Run the cases without an outcome and print each outcome; returns the exit code."""
    ends, outcomes, failed = time.monotonic() + limit_seconds, Kept(proof.folder), 0
    for name in names:
        print(f"{name}: {STAGES[name].asks}", flush=True)
        for case in STAGES[name].cases(proof):
            outcome = outcomes.find(name, case)
            if outcome is None or (again and outcome.exit_code):
                remaining_seconds = ends - time.monotonic()
                outcome = run(case, remaining_seconds) if remaining_seconds > 0 else None
                if outcome is None:
                    print(f"  {case.key}: stopped after {limit_seconds:.0f} s; begin again")
                    return LEFT
                outcomes.keep(name, case, outcome)
            failed += outcome.exit_code != 0
            print(f"  {case.key}: {_end(outcome)}", flush=True)
    return FAILED if failed else 0


def _end(outcome: Outcome) -> str:
    if outcome.exit_code == 0:
        return f"{outcome.seconds:.0f} s"
    last_lines = outcome.said.splitlines()[-1:] or ["nothing was said"]
    return f"failed with {outcome.exit_code}: {last_lines[0]:.160}"


def report(proof: Asked, names: list[str]) -> Iterator[str]:
    """Render the outcomes of each stage as Markdown."""
    outcomes = Kept(proof.folder)
    for name in names:
        stage = STAGES[name]
        cases = [*stage.cases(proof)]
        finished = [(case, outcome) for case in cases if (outcome := outcomes.find(name, case))]
        yield f"## {name}: {stage.asks}\n\n{len(finished)} of {len(cases)} cases.\n"
        yield from _sound(stage, [outcome.said for _, outcome in finished if not outcome.exit_code])
        for case, outcome in finished:
            if outcome.exit_code:
                yield f"- {case.key}: {_end(outcome)}\n"


def _sound(stage: Stage, lines: list[str]) -> Iterator[str]:
    if lines and stage.header:
        rows = [" | ".join(stage.header), " | ".join("---" for _ in stage.header)]
        yield "\n".join([*(f"| {row} |" for row in rows), *lines]) + "\n"
        return
    for line in lines:
        yield f"```\n{line}\n```\n"


def main() -> int:
    """Run the stages, or print the report."""
    options = _options()
    names = options.stages or [*STAGES]
    proof = Asked(
        load_catalogue(ROOT),
        options.folder.resolve(),
        options.provider,
        options.hardware,
        tuple(options.models),
    )
    if options.report:
        print("\n".join(report(proof, names)))
        return 0
    device = run(device_case(proof), _DEVICE_SECONDS)
    if device is None or device.exit_code:
        print(device.said if device else "the device did not answer in time", file=sys.stderr)
        return NO_DEVICE
    print(device.said, flush=True)
    return prove(proof, names, options.limit_seconds, again=options.again)


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
    parser.add_argument("--again", action="store_true", help="repeat failed cases")
    parser.add_argument("--report", action="store_true", help="print the outcomes")
    options = parser.parse_args()
    unknown = [name for name in options.stages if name not in STAGES]
    if unknown:
        parser.error(f"expected stages of {', '.join(STAGES)}, got {', '.join(unknown)}")
    return options


if __name__ == "__main__":
    raise SystemExit(main())
