"""Run all measurements that need a GPU, in stages that can be stopped and resumed.

    python benchmarks/cuda_proof.py FOLDER [STAGE …] [--hardware h200-sxm-share]
                                    [--limit-seconds 480] [--models mnist-cnn …] [--again]
    python benchmarks/cuda_proof.py FOLDER --report

Run it from the repository's root with an interpreter that has epochcost, `requirements/gpu.txt`
and, for gradients and steps, PyTorch for CUDA. --help lists the stages, the most valuable first. A
stage consists of cases, each a process whose outcome FOLDER stores. Stored cases are not run again;
--again repeats failed ones. After the limit no further case begins and the running one is stopped;
runs of trials keep finished results and continue from there. Results of trials go to
FOLDER/results, ratios to PyTorch to FOLDER/steps.json. FOLDER belongs to the device of its first
run, so that figures of two devices never mix. --report prints all outcomes as Markdown, on any
machine. The first GPU of CUDA_VISIBLE_DEVICES is used.

`--provider cpu` tests the script on a machine without a GPU; its figures mean nothing. Without a
usable GPU, or with another device than FOLDER's, the script prints one line with the reason and
exits with code 3. It exits with 1 if cases failed, and with 4 if cases are left, also after Ctrl-C
or SIGTERM.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from cuda_stages import BENCHMARKS, STAGES, Asked, Case, Stage, device_case
from line_process import with_benchmarks

from epochcost.cli.interruption import interrupted_by_signals
from epochcost.errors import InputError
from epochcost.results.files import write_atomically
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.loader import load_catalogue

ROOT = BENCHMARKS.parent
NO_DEVICE, FAILED, LEFT = 3, 1, 4
_MOST_CHARACTERS = 4000
# The file that names the machine of a folder.
_MACHINE = "machine.json"
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
        """The outcome of a case; None if the case has not run, or ran with other options."""
        path = self._path(stage, case)
        outcome = Outcome(**json.loads(path.read_text("utf-8"))) if path.is_file() else None
        same = outcome and _without_places(outcome.command) == _without_places(case.command)
        return outcome if same else None

    def keep(self, stage: str, case: Case, outcome: Outcome) -> None:
        """Store an outcome atomically."""
        path = self._path(stage, case)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(asdict(outcome), indent=1).encode() + b"\n")

    def _path(self, stage: str, case: Case) -> Path:
        return self._folder / stage / f"{case.key}.json"


def _without_places(command: Sequence[str]) -> list[str]:
    """The command without absolute paths: the folders may have moved to another machine."""
    return [word for word in command if not Path(word).is_absolute()]


def run(case: Case, most_seconds: float) -> Outcome | None:
    """Run a case; returns None if the time is over before the case ends.

    All processes that the case has started end with it.
    """
    begun = time.monotonic()
    process = subprocess.Popen(
        case.command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        # Steps use this interpreter's PyTorch by default: a rented machine builds no environment.
        env={"EPOCHCOST_STEPS_TORCH": sys.executable} | with_benchmarks(),
        cwd=ROOT,
        start_new_session=True,
    )
    try:
        output, complaint = process.communicate(timeout=most_seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        _stop(process)
    text = (output if process.returncode == 0 else output + complaint).strip()
    seconds = round(time.monotonic() - begun, 1)
    return Outcome(case.command, process.returncode, seconds, text[-_MOST_CHARACTERS:])


def _stop(process: subprocess.Popen[str]) -> None:
    """Let a running case store its results, then kill what is left of its processes."""
    try:
        if process.poll() is None:
            process.terminate()
            process.communicate(timeout=_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        pass
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def prove(proof: Asked, names: list[str], ends: float, *, again: bool) -> int:
    """Run the cases without an outcome until ``ends`` of the monotonic clock; print each outcome.

    Returns the exit code.
    """
    outcomes, failed = Kept(proof.folder), 0
    for name in names:
        print(f"{name}: {STAGES[name].asks}", flush=True)
        for case in STAGES[name].cases(proof):
            outcome = outcomes.find(name, case)
            if outcome is None or (again and outcome.exit_code):
                remaining_seconds = ends - time.monotonic()
                outcome = run(case, remaining_seconds) if remaining_seconds > 0 else None
                if outcome is None:
                    print(f"  {case.key}: stopped at the limit of time; begin again")
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
    yield f"Device: {_machine(proof.folder)['device']}\n"
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
    for line in filter(None, lines):
        yield f"```\n{line}\n```\n"


def main() -> int:
    """Run the stages, or print the report."""
    ends = time.monotonic()
    catalogue = load_catalogue(ROOT)
    options = _options(catalogue)
    ends += options.limit_seconds
    names = options.stages or [*STAGES]
    folder = options.folder.resolve()
    if options.report:
        machine = _machine(folder)
        options.provider, options.hardware = machine["provider"], machine["hardware"]
    models = tuple(options.models)
    proof = Asked(catalogue, folder, options.provider, options.hardware, models)
    if options.report:
        print("\n".join(report(proof, names)))
        return 0
    try:
        with interrupted_by_signals():
            return _claim(proof, options.limit_seconds) or prove(
                proof, names, ends, again=options.again
            )
    except KeyboardInterrupt:
        print("interrupted; begin again", file=sys.stderr)
        return LEFT


def _machine(folder: Path) -> dict[str, str]:
    """The provider, hardware and device that a folder's outcomes are from."""
    try:
        machine: dict[str, str] = json.loads((folder / _MACHINE).read_text("utf-8"))
    except FileNotFoundError:
        raise SystemExit(f"{folder}: expected outcomes of a run, found none") from None
    return machine


def _claim(proof: Asked, most_seconds: float) -> int:
    """Check the device, and that the folder is its own; returns 0 or the exit code."""
    device = run(device_case(proof), min(_DEVICE_SECONDS, most_seconds))
    if device is None or device.exit_code:
        print(device.said if device else "the device did not answer in time", file=sys.stderr)
        return NO_DEVICE
    print(device.said, flush=True)
    machine = {"provider": proof.provider, "hardware": proof.hardware, "device": device.said}
    path = proof.folder / _MACHINE
    if not path.is_file():
        proof.folder.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(machine, indent=1).encode() + b"\n")
    elif (stored := _machine(proof.folder)) != machine:
        reason = f"has outcomes of {stored}, this is {machine}: name another folder"
        print(f"{proof.folder}: {reason}", file=sys.stderr)
        return NO_DEVICE
    return 0


def _options(catalogue: Catalogue) -> argparse.Namespace:
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
    try:
        catalogue.machine(options.hardware)
        for model in options.models:
            catalogue.model(model)
    except InputError as error:
        parser.error(str(error))
    return options


if __name__ == "__main__":
    raise SystemExit(main())
