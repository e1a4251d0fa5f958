"""Run ONNX files of other projects through load_model, vjp_graph and training_step.

    python benchmarks/foreign_files.py FOLDER [--json FILE [--resume]] [--messages]

Every *.onnx below the folder is examined in a separate process, equal files only once. The file
runs on ONNX Runtime with random inputs, or with the inputs of a test_data_set next to it. The
gradient graph must return the file's outputs, and gradients that equal finite differences, in
float64 if ONNX Runtime or onnx's reference evaluator can compute the file in float64. Then two
training steps of the squared error of the file's first float output must run. A file has the answer
of its worst stage.

A refusal of a file that ONNX Runtime loads is "with reason" if its message quotes a node or value
of the file, names the operator (unless the value is an input, output or stored tensor), and has a
clause with a remedy ("export it …", "bind …"). Otherwise the message misleads. "Hang" is --seconds
of CPU time in a stage of epochcost. "Not judged" has a reason why nothing could be compared. --json
appends results to a file, one a line, and --resume continues that file. --messages prints the
distinct messages, without names and numbers, with their count and first file.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "runner/onnxstep/tests"))

from foreign.answers import REFUSALS, Answer
from foreign.pool import Examined, Limits, examine_all

Record = Mapping[str, Any]
_SHOWN = frozenset(Answer) - {Answer.RIGHT, Answer.AS_RUNTIME}


def distinct(folder: Path, examined: Iterable[str] = ()) -> dict[Path, str]:
    """The folder's ONNX files with different contents and their digests, small files first.

    Contents whose digests are ``examined`` are left out.
    """
    digests, digests_seen = {}, set(examined)
    paths = [path for path in sorted(folder.rglob("*.onnx")) if path.is_file()]
    for path in sorted(paths, key=lambda path: path.stat().st_size):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        if digest not in digests_seen:
            digests[path] = digest
            digests_seen.add(digest)
    return digests


def record(examined: Examined, folder: Path, digest: str) -> Record:
    """A result as one line of JSON."""
    return {
        "path": str(examined.path.relative_to(folder)),
        "sha256": digest,
        "answer": examined.answer,
        "seconds": round(examined.seconds, 2),
        "findings": [asdict(finding) for finding in examined.findings],
    }


def read_records(path: Path) -> list[Record]:
    """The results in a file; an incomplete last line is ignored."""
    lines = path.read_text("utf-8").splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def table(records: Iterable[Record]) -> Iterator[str]:
    """Number of files for each answer, as a Markdown table."""
    counts = Counter(record["answer"] for record in records)
    yield from ("| | files |", "|---|--:|")
    yield from (f"| {answer} | {counts[answer]} |" for answer in Answer)
    refusals = sum(counts[answer] for answer in REFUSALS)
    yield f"\n{counts.total()} files; {refusals} refusals of files that ONNX Runtime loads"


def messages(records: Iterable[Record]) -> Iterator[str]:
    """The messages of each bad answer, with their count and first file."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for row in records:
        for finding in row["findings"]:
            if finding["answer"] == row["answer"] and row["answer"] in _SHOWN:
                lacks = ", ".join(finding["lacks"])
                text = _general(finding["message"]) + (f" [lacks {lacks}]" if lacks else "")
                groups.setdefault((row["answer"], finding["stage"], text), []).append(row["path"])
    for answer in Answer:
        chosen = {key: paths for key, paths in groups.items() if key[0] == answer}
        if chosen:
            yield f"\n## {answer}\n"
        for (_, stage, text), paths in sorted(chosen.items(), key=lambda e: -len(e[1])):
            yield f"- {len(paths)} x {stage}: {text}\n  ({paths[0]})"


def _general(message: str) -> str:
    """The first 300 characters of a message, without names, numbers and operators."""
    text = re.sub(r"^\S*\.onnx: ", "", message)
    text = re.sub(r"'[^']*'", "'…'", text)
    text = re.sub(r"(?i)(op_?type: ?)\w+", r"\1…", text)
    return re.sub(r"-?\d[\d.e+-]*", "N", text)[:300]


def main() -> None:
    """Examine the files without a result, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=int, default=30, help="CPU time of a stage of a file")
    parser.add_argument("--megabytes", type=int, default=4096, help="memory of a file's process")
    parser.add_argument("--jobs", type=int, default=2, help="files at a time")
    parser.add_argument("--limit", type=int, help="files of this call")
    parser.add_argument("--json", type=Path, help="append results to this file, one a line")
    parser.add_argument("--resume", action="store_true", help="leave out what the file has")
    parser.add_argument("--messages", action="store_true", help="print what was said")
    options = parser.parse_args()
    if options.resume and not options.json:
        parser.error("--resume needs --json FILE, from which to go on")
    records = read_records(options.json) if options.resume else []
    digests = distinct(options.folder, [row["sha256"] for row in records])
    limits = Limits(options.seconds, options.megabytes)
    for examined in examine_all(list(digests)[: options.limit], limits, options.jobs):
        records.append(record(examined, options.folder, digests[examined.path]))
        if options.json:
            with options.json.open("a", encoding="utf-8") as file:
                file.write(json.dumps(records[-1]) + "\n")
        if len(records) % 100 == 0:
            print(f"{len(records)} files", file=sys.stderr, flush=True)
    print("\n".join([*table(records), *(messages(records) if options.messages else ())]))


if __name__ == "__main__":
    main()
