"""A git repository read through its objects: neither the working tree nor the index is touched."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from epochcost.analysis.inputs import RATIOS_FILE
from epochcost.errors import CapabilityError, EpochcostError, InputError
from epochcost.results.store import MAX_FILE_BYTES

DOCS = "docs"
RESULTS = f"{DOCS}/data/results"
_READ = ("specs", "models", RESULTS, f"{DOCS}/{RATIOS_FILE}")
_REGULAR = ("100644", "100755")
# Parts of a path that would lead out of the folder that it is written below.
_OUTSIDE = ("", ".", "..")

Files = Mapping[str, bytes]


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
        reason = done.stderr.decode(errors="replace").strip().removeprefix("fatal: ")
        raise InputError(f"{folder.resolve().name}: expected a git repository, got: {reason:.300}")
    return done.stdout


def earlier_revision(folder: Path) -> str:
    """The last tag before the commit that is checked out, else its parent; empty without either."""
    for command in (("describe", "--tags", "--abbrev=0"), ("rev-parse", "--verify", "--quiet")):
        with contextlib.suppress(EpochcostError):
            return git(folder, *command, "HEAD^").decode(errors="replace").strip()
    return ""


def commit_id(project: Path, revision: str) -> str:
    """Full id of the commit that a revision names; raises InputError if it names none."""
    named = ("--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    try:
        return git(project, "rev-parse", *named).decode().strip()
    except InputError:
        git(project, "rev-parse", "--git-dir")  # names what is wrong where this is no checkout
        raise InputError(
            f"{revision!r:.80}: expected a commit, branch or tag of this repository, found none of "
            "that name: in a shallow clone, `git fetch` it first"
        ) from None


def committed_files(project: Path, commit: str) -> Files:
    """Specs, models, results and ratios of a commit by path; links and huge files are left out."""
    blobs = dict(_tree(project, commit))
    return dict(zip(blobs, _contents(project, blobs), strict=True))


def working_files(project: Path) -> Files:
    """The same of the working tree: tracked files and new ones that git does not ignore."""
    kept = ("--cached", "--others", "--exclude-standard")
    listed = os.fsdecode(git(project, "ls-files", "-z", *kept, "--", *_READ))
    paths = sorted({path for path in listed.split("\0") if path and _is_plain(project / path)})
    return {path: (project / path).read_bytes() for path in paths}


def _tree(project: Path, commit: str) -> Iterator[tuple[str, str]]:
    listed = git(project, "ls-tree", "-r", "-l", "-z", commit, "--", *_READ)
    for line in filter(None, os.fsdecode(listed).split("\0")):
        about, _, path = line.partition("\t")
        mode, _, blob, size = about.split()
        inside = not any(part in _OUTSIDE for part in path.split("/"))
        if inside and mode in _REGULAR and int(size) <= MAX_FILE_BYTES:
            yield path, blob


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and path.stat().st_size <= MAX_FILE_BYTES


def _contents(project: Path, blobs: Mapping[str, str]) -> Iterator[bytes]:
    """The bytes of blobs by path, in their order, from one process of git."""
    wanted = "".join(f"{blob}\n" for blob in blobs.values()).encode()
    data = git(project, "cat-file", "--batch", given=wanted) if blobs else b""
    begin = 0
    for path in blobs:
        end_of_line = data.index(b"\n", begin)
        about = data[begin:end_of_line].decode()
        if about.endswith("missing"):
            raise InputError(f"{path}: expected its content, which git lacks: `git fetch` it first")
        begin = end_of_line + 1
        size = int(about.rsplit(" ", 1)[1])
        yield data[begin : begin + size]
        begin += size + 1
