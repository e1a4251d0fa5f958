"""A git repository read through its objects: neither the working tree nor the index is touched."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from epochcost.errors import CapabilityError, EpochcostError, InputError


def git(folder: Path, *arguments: str, given: bytes | None = None) -> bytes:
    """Output of git; raises CapabilityError without it, and InputError if it refuses."""
    # No lock is taken, no index is refreshed and nothing is fetched, whatever else runs there.
    quiet = {"GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"}
    command = ["git", "-c", "core.quotePath=false", *arguments]
    try:
        done = subprocess.run(
            command, cwd=folder, env=os.environ | quiet, input=given, capture_output=True,
            check=False,
        )  # fmt: skip
    except FileNotFoundError:
        raise CapabilityError("expected git to read revisions, found no such program") from None
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().removeprefix("fatal: ")
        raise InputError(f"{folder.resolve().name}: expected a git repository, got: {said:.300}")
    return done.stdout


def earlier_revision(folder: Path) -> str:
    """The last tag before the commit that is checked out, else its parent; empty without either."""
    for command in (("describe", "--tags", "--abbrev=0"), ("rev-parse", "--verify", "--quiet")):
        with contextlib.suppress(EpochcostError):
            return git(folder, *command, "HEAD^").decode(errors="replace").strip()
    return ""


def blob_contents(folder: Path, blobs: Sequence[str]) -> Iterator[bytes | None]:
    """The bytes of blobs, in their order, from one process of git; None for one that is missing."""
    wanted = "".join(f"{blob}\n" for blob in blobs).encode()
    data = git(folder, "cat-file", "--batch", given=wanted) if blobs else b""
    begin = 0
    for _ in blobs:
        end_of_line = data.index(b"\n", begin)
        about = data[begin:end_of_line].decode()
        begin = end_of_line + 1
        if about.endswith("missing"):
            yield None
            continue
        size = int(about.rsplit(" ", 1)[1])
        yield data[begin : begin + size]
        begin += size + 1
