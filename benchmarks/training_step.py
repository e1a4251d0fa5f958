"""Our training step against PyTorch eager, torch.compile, JAX jit and onnxruntime-training.

    python benchmarks/training_step.py [--models mnist-mlp …] [--contenders eager compile jax …]
                                       [--threads 1 2] [--most-seconds 600] [--again]
    python benchmarks/training_step.py --table

Run it with the project's environment from the repository's root. Contenders are the other programs.
Their environments are built when they are first needed (or named: see steps/environments.py). The
first command measures missing cases and adds each to docs/data/training-steps.json at once.
``--prepare`` does everything but the timing, so that a timed run finds compiled code. ``--peaks``
only measures the memory of epochcost's steps again, on a busy machine too. The second command
writes the tables of docs/explanation/performance.md and the ratios on the site, and prints the
cases in which PyTorch is faster. The exit code is 1 if a contender failed in this run; the records
say why.

``--device cuda`` compares with PyTorch's eager mode and torch.compile on a GPU, in more precisions.
Steps are then timed in bursts, since PyTorch queues them. Use a separate file of records.

A step is a trial's step: a fresh batch is copied in; then forward in training mode (with dropout),
loss, backward, and the optimizer's update. Before a model is timed, the losses of its first two
steps without dropout are compared. A contender with other losses is not timed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from steps import losses, machine, table
from steps.cases import CONTENDERS, INFERENCE_CONTENDERS, OURS, Case, Mode, cases
from steps.ceilings import measure_ceilings
from steps.environments import interpreter
from steps.prepared import prepared
from steps.records import Records
from steps.rounds import Timed, first_answer, take_turns

ROOT = Path.cwd()
RECORDS = ROOT / "docs" / "data"
CACHE = ROOT / ".cache" / "steps"
# Contenders that are in memory beside epochcost at the same time in one session.
_TOGETHER = 2


def main(mode: Mode = "training", write: Callable[..., list[str]] = table.write) -> None:
    """Measure what is missing, or write the tables, as the options say."""
    options = _options(mode)
    records = Records(options.records)
    if options.peaks:
        _measure_peaks(records, options)
    elif options.table:
        print("\n".join(write(records.all, ROOT)))
    elif _measure(records, options):
        sys.exit(1)


def _measure(records: Records, options: argparse.Namespace) -> int:
    """Measure what is missing; returns the number of contenders that failed."""
    begun, failed = time.monotonic(), 0
    if not options.prepare and options.device == "cpu":
        _note_machine(records, options.threads)
    for case in _cases(options):
        if options.again:
            records.forget(case.key, options.contenders)
        missing = records.missing(case.key, options.contenders)
        for group in (missing[at : at + _TOGETHER] for at in range(0, len(missing), _TOGETHER)):
            if options.most_seconds and time.monotonic() - begun > options.most_seconds:
                return failed
            failed += _compare(records, case, group, options)
    return failed


def _measure_peaks(records: Records, options: argparse.Namespace) -> None:
    """Measure the memory of epochcost's steps in cases with known times."""
    for case in _cases(options):
        if case.key in records.all["cases"]:
            folder, python = prepared(ROOT, CACHE, case), interpreter(OURS, CACHE / "environments")
            peak = first_answer(python, OURS, folder, case.threads)["peak_bytes"]
            records.case(case.key)["our_peak"] = {"peak_bytes": peak, **machine.stamp(ROOT)}
            records.save()
            print(f"{case.key}: {peak / 1e6:,.0f} MB", flush=True)


def _cases(options: argparse.Namespace) -> Iterator[Case]:
    requested = options.models, options.batches, options.threads
    return cases(*requested, options.device, options.precisions, options.mode)


def _options(mode: Mode) -> argparse.Namespace:
    contenders = CONTENDERS if mode == "training" else INFERENCE_CONTENDERS
    parser = argparse.ArgumentParser()
    parser.set_defaults(mode=mode)
    parser.add_argument("--models", nargs="+", default=[])
    parser.add_argument("--batches", nargs="+", type=int, default=[])
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--contenders", nargs="+", default=list(contenders), choices=contenders)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument(
        "--precisions", nargs="+", choices=("fp32", "tf32", "fp16", "bf16"), default=["fp32"]
    )
    parser.add_argument("--seconds", type=float, default=20, help="of each contender's bursts")
    parser.add_argument("--most-seconds", type=float, help="begin no case after these")
    parser.add_argument("--again", action="store_true", help="measure finished cases anew")
    parser.add_argument("--prepare", action="store_true", help="everything but the timing")
    parser.add_argument("--peaks", action="store_true", help="only our memory, in known cases")
    parser.add_argument("--table", action="store_true", help="write tables from the records")
    parser.add_argument("--records", type=Path, default=RECORDS / f"{mode}-steps.json")
    return parser.parse_args()


def _note_machine(records: Records, threads: Sequence[int]) -> None:
    records.all["machine"] = machine.described()
    ceilings = records.all["ceilings"]
    for count in threads:
        ceiling = ceilings.get(str(count), {})
        measured = measure_ceilings(count)
        ceilings[str(count)] = {name: max(v, ceiling.get(name, 0)) for name, v in measured.items()}
    records.save()


def _compare(
    records: Records, case: Case, contenders: Sequence[str], options: argparse.Namespace
) -> int:
    """Check and time contenders beside epochcost; record failures and return their number."""
    pythons = {name: interpreter(name, CACHE / "environments") for name in (OURS, *contenders)}
    compared = losses.compared(ROOT, CACHE, case, pythons)
    unlike = {name: result.reason for name, result in compared.items() if result.reason}
    timed, failed = take_turns(
        {name: python for name, python in pythons.items() if name not in unlike},
        prepared(ROOT, CACHE, case),
        case.threads,
        0 if options.prepare else options.seconds,
    )
    failed = {**unlike, **failed}
    for name, reason in failed.items():
        print(f"{case.key}: {name}: {reason}", file=sys.stderr)
    if OURS in failed:
        sys.exit(1)
    if options.prepare:
        print(f"{case.key}: prepared", flush=True)
    else:
        _keep(records, case, compared, timed, failed)
    return len(failed)


def _keep(
    records: Records,
    case: Case,
    compared: Mapping[str, losses.Compared],
    timed: Timed | None,
    failed: Mapping[str, str],
) -> None:
    record = records.case(case.key)
    record["failed"] |= failed
    record["losses"] |= {name: result.losses for name, result in compared.items()}
    record["notes"] |= {name: result.note for name, result in compared.items() if result.note}
    if timed is not None:
        session = machine.session(ROOT, timed)
        if case.device == "cpu":
            session["cpu"] = records.all["machine"]["cpu"]
            session["ceilings"] = records.all["ceilings"][str(case.threads)]
        record["sessions"].append(session)
        print(table.line(case.key, session), flush=True)
    records.save()


if __name__ == "__main__":
    main()
