#!/usr/bin/env python3
"""Checks a pull request's specs and results and says what it changes in cost.

    compare.py BASE FOLDER

Leaves FOLDER/comment.json, the data of a comment: the faults, or the changes since the commit BASE.
Its text goes to the log and, where GITHUB_STEP_SUMMARY names one, into the job's summary. Exits 1
if a check finds faults. EPOCHCOST names another program than .venv's.
"""

import dataclasses
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

sys.dont_write_bytecode = True  # no files beside the scripts
from request_comment import (  # noqa: E402
    BUDGETS,
    Comment,
    Part,
    faults_part,
    markdown,
    read_comment,
    unkept_budgets_part,
    write_comment,
)


def main() -> None:
    """Compare, and leave what a comment is to say."""
    base, folder = sys.argv[1], Path(sys.argv[2])
    comment = compare(base)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "comment.json").write_bytes(write_comment(comment))
    text = markdown(comment)
    print(text, end="")
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(summary).open("a", encoding="utf-8") as file:
            file.write(text)
    sys.exit(1 if comment.failed else 0)


def compare(base: str) -> Comment:
    """The first check's faults, or the changes with the faults of budgets.

    Each check comes after those that it relies on, so that a fault is named once.
    """
    # A result that the request brings has to be of today's models; those here may be older.
    names = ("git", "diff", "--name-only", "-z", "--diff-filter=AMR", base, "--")
    brought = os.fsdecode(output(*names, ":(glob)docs/data/results/*/*.json")).split("\0")[:-1]
    submissions = [("--results", *brought)] if brought else []
    for options in [(), *submissions, ("--results",)]:
        if faults := check(*options):
            return Comment(f"check {options[0]}" if options else "check", parts=faults)
    changes = read_comment(output(program(), "diff", base, "--format", "comment"))
    if faults := check("--budgets", rows_of=unkept_budgets_part):
        parts = {**changes.parts, **faults}
        return dataclasses.replace(changes, failed=BUDGETS, parts=parts)
    return changes


def check(*options: str, rows_of: Callable[[str], Part] = faults_part) -> dict[str, Part]:
    """The part of a comment that names the faults, from the output; empty if there are none."""
    command = (program(), "check", *options)
    done = subprocess.run(
        command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        encoding="utf-8", errors="replace",
    )  # fmt: skip
    print(done.stdout, end="", flush=True)
    return {"faults": rows_of(done.stdout)} if done.returncode else {}


def program() -> str:
    """The path of epochcost."""
    return os.environ.get("EPOCHCOST", ".venv/bin/epochcost")


def output(*command: str) -> bytes:
    """What a command prints; one that fails has said why and ends this."""
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE)
    if done.returncode:
        sys.exit(done.returncode)
    return done.stdout


if __name__ == "__main__":
    main()
