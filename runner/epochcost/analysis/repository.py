"""A git repository read through its objects, and the replaced results that it keeps.

Neither the working tree nor the index is touched. What git says of a results folder is one `git
log`, and all contents come from one `git cat-file`. What is shown of a result is cached by its
blob's id, so that each is parsed and summarised once. Which revisions are compared, and what their
files mean, is left to `difference`.
"""

from __future__ import annotations

import contextlib
import math
import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import TypeAdapter

from epochcost.analysis.gc_pause import gc_paused
from epochcost.errors import CapabilityError, EpochcostError, InputError
from epochcost.plan.trial import Trial
from epochcost.results.environment import Environment
from epochcost.results.fields import (
    Count,
    FiniteSeconds,
    NonNegative,
    PositiveNumber,
    Record,
    Timestamp,
)
from epochcost.results.format import DamagedResultError, parse_result
from epochcost.results.kept import Keep
from epochcost.results.records import Result
from epochcost.results.rounds import round_count, summary_of
from epochcost.results.store import MAX_FILE_BYTES

# The newest of so many replaced files; a project that has more shows its latest years.
MOST_REVISIONS = 2000


def git(folder: Path, *arguments: str, given: bytes | None = None) -> bytes:
    """What git says; raises CapabilityError without git, and InputError where git refuses."""
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
    for asked in (("describe", "--tags", "--abbrev=0"), ("rev-parse", "--verify", "--quiet")):
        with contextlib.suppress(EpochcostError):
            return git(folder, *asked, "HEAD^").decode(errors="replace").strip()
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


def _replaced_blobs(folder: Path) -> Iterator[str]:
    """Ids of contents that result files below a folder had before a change, newest change first.

    What the working tree has changed since the last commit comes before all.
    """
    asked = ("--raw", "-z", "--no-abbrev", "--no-renames", "--relative", "--diff-filter=MDT")
    for said in (
        git(folder, "diff-index", *asked, "HEAD", "--", "."),
        git(folder, "log", *asked, "--format=", "--", "."),
    ):
        parts = iter(said.decode(errors="replace").split("\0"))
        for about in parts:
            path = next(parts, "")
            if about and path.count("/") == 1 and path.endswith(".json"):
                yield about.split()[2]


class PastResult(Record):
    """What a history shows of one: its work, its host, and its mean step with the interval."""

    blob: str
    hardware: str
    trial: Trial
    environment: Environment
    started_at: Timestamp
    rounds: Count
    low: NonNegative
    mean: FiniteSeconds
    high: PositiveNumber


# None for a blob that is no result of steps.
_KEPT = Keep(
    "past-results",
    TypeAdapter(tuple[str, dict[str, PastResult | None]]),
    ("analysis/repository.py", "results", "statistics"),
)


@dataclass(frozen=True)
class Past:
    """The replaced results of some folders, and in sentences what of them could not be read."""

    results: tuple[PastResult, ...] = ()
    left_out: tuple[str, ...] = field(default_factory=tuple)


def past_results(folders: Iterable[Path], cache: Path | None = None) -> Past:
    """Every replaced or removed result below the folders, of which git has the content.

    ``cache`` is a folder for what is computed once for many builds; None keeps nothing.
    """
    known = _KEPT.read(cache, "") or {}
    found: dict[str, PastResult | None] = {}
    left_out: list[str] = []
    for folder in folders:
        try:
            found |= _in_folder(folder, known, left_out)
        except (CapabilityError, InputError) as error:
            said = str(error).splitlines()[0]
            left_out.append(f"Results that were replaced are not shown: {said}.")
    if found != known:
        _KEPT.write(cache, "", found)
    return Past(tuple(one for one in found.values() if one), tuple(dict.fromkeys(left_out)))


def _in_folder(
    folder: Path, known: dict[str, PastResult | None], left_out: list[str]
) -> dict[str, PastResult | None]:
    if not folder.is_dir():
        return {}
    blobs = [*dict.fromkeys(_replaced_blobs(folder))]
    if git(folder, "rev-parse", "--is-shallow-repository").strip() == b"true":
        left_out.append("This is a shallow clone: what was replaced before its oldest commit "
                        "is not here.")  # fmt: skip
    if len(blobs) > MOST_REVISIONS:
        left_out.append(f"Of {len(blobs)} replaced results, the newest {MOST_REVISIONS} are read.")
        blobs = blobs[:MOST_REVISIONS]
    new = [blob for blob in blobs if blob not in known]
    contents = dict(zip(new, blob_contents(folder, new), strict=True))
    missing = sum(data is None for data in contents.values())
    if missing:
        left_out.append(f"Of {missing} replaced results this clone has no content.")
    read = dict(_read(contents))
    return {blob: one for blob in blobs for one in _one(blob, known, read)}


def _one(blob: str, *known: dict[str, PastResult | None]) -> Iterator[PastResult | None]:
    yield from (found[blob] for found in known if blob in found)


def _read(contents: Mapping[str, bytes | None]) -> Iterator[tuple[str, PastResult | None]]:
    """What a history shows of each file; None where it is damaged, or LoadGen's.

    Files of as many samples follow each other: they share the larger half of their statistics.
    """
    with gc_paused():
        parsed = [(blob, _parsed(blob, data)) for blob, data in contents.items() if data]
    timed = [(blob, one) for blob, one in parsed if one is not None]
    yield from ((blob, None) for blob, one in parsed if one is None)
    for blob, one in sorted(timed, key=lambda pair: pair[1].measurement.samples_by_round):
        yield blob, _shown(blob, one)


def _parsed(blob: str, data: bytes) -> Result | None:
    if len(data) > MAX_FILE_BYTES:
        return None
    try:
        result = parse_result(data, Path(blob))
    except DamagedResultError:
        return None
    return None if result.measurement.served is not None else result


def _shown(blob: str, result: Result) -> PastResult | None:
    summary = summary_of(result.measurement)
    if not math.isfinite(summary.interval.high):
        return None
    return PastResult(
        blob=blob,
        hardware=result.hardware,
        trial=result.trial,
        environment=result.environment,
        started_at=result.measurement.started_at,
        rounds=round_count(result.measurement),
        low=summary.interval.low,
        mean=summary.mean,
        high=summary.interval.high,
    )
