"""The folder of results: ``<hardware>/<model>-<mode>-<provider>-b<batch>-<trial>-<host>.json``.

``<trial>`` and ``<host>`` are the first digits of the trial's id and the host's fingerprint, so a
repeated measurement replaces its predecessor, in one step when it is complete, and that of
another host stands beside it. Who writes holds ``results.lock``.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from epochcost.errors import Fault, ResultError
from epochcost.plan.trial import Trial
from epochcost.results.atomic import write_atomically
from epochcost.results.format import (
    DamagedResultError,
    NewerResultError,
    dump_result,
    parse_result,
)
from epochcost.results.records import Result

# A million samples take about 20 MB; a longer file is not ours, and would fill the memory.
MAX_FILE_BYTES = 64 * 2**20
_TRIAL_DIGITS = 8
_HOST_DIGITS = 4


@dataclass(frozen=True)
class Loaded:
    """What a folder holds: its results, and a fault for each file that is not one.

    ``files`` are those of the results, in their order.
    """

    results: tuple[Result, ...]
    faults: tuple[Fault, ...]
    files: tuple[Path, ...] = ()

    def require_sound(self) -> tuple[Result, ...]:
        """The results; raises ResultError naming every damaged file, if there is one."""
        if self.faults:
            raise ResultError("\n".join(map(str, self.faults)))
        return self.results


@dataclass(frozen=True)
class ResultStore:
    """Results under one folder, a subfolder per hardware id."""

    folder: Path

    def path_of(self, trial: Trial, hardware: str, fingerprint: str) -> Path:
        """Where the result of a trial on a host is kept."""
        work = f"{trial.model}-{trial.mode}-{trial.provider}-b{trial.batch_size}"
        name = f"{work}-{trial.id[:_TRIAL_DIGITS]}-{fingerprint[:_HOST_DIGITS]}.json"
        return self.folder / hardware / name

    def write(self, result: Result) -> Path:
        """Keep a result and return its file; raises CapabilityError where the disk refuses."""
        path = self.path_of(result.trial, result.hardware, result.environment.fingerprint)
        write_atomically(path, dump_result(result))
        return path

    def find(self, trial: Trial, hardware: str, fingerprint: str) -> Result | None:
        """The stored result of a trial on a host; None where there is none, or a damaged one.

        Raises NewerResultError where a newer version's stands in its place.
        """
        path = self.path_of(trial, hardware, fingerprint)
        try:
            result = _read(path, self.folder)
        except NewerResultError:
            raise
        except DamagedResultError:
            return None
        same = (result.trial_id, result.environment.fingerprint) == (trial.id, fingerprint)
        return result if same else None


def load_all(folder: Path) -> Loaded:
    """Every result under ``folder``, ordered by file name; a missing folder is empty."""
    read = dict(load_each(folder))
    results = {path: one for path, one in read.items() if isinstance(one, Result)}
    faults = (one for one in read.values() if isinstance(one, Fault))
    return Loaded(tuple(results.values()), tuple(faults), tuple(results))


def load_each(folder: Path) -> Iterator[tuple[Path, Result | Fault]]:
    """What each file under ``folder`` is, one after the other, ordered by file name."""
    for path in sorted(folder.glob("*/*.json")):
        try:
            yield path, _read(path, folder)
        except DamagedResultError as error:
            yield path, error.fault


def newest(results: Iterable[Result]) -> tuple[Result, ...]:
    """The latest result of each trial on each host, in order of first appearance."""
    latest: dict[tuple[str, str, str], Result] = {}
    for result in results:
        key = (result.hardware, result.environment.fingerprint, result.trial_id)
        known = latest.setdefault(key, result)
        if result.measurement.started_at > known.measurement.started_at:
            latest[key] = result
    return tuple(latest.values())


def _read(path: Path, root: Path) -> Result:
    try:
        for message in _refusals(path, root):
            raise DamagedResultError(Fault(path, 1, 1, message))
        result = parse_result(path.read_bytes(), path)
    except (OSError, RuntimeError) as error:  # a loop of links is a RuntimeError before Python 3.13
        reason = error.strerror if isinstance(error, OSError) else "links that form a loop"
        message = f"demanded a readable file; got {reason}"
        raise DamagedResultError(Fault(path, 1, 1, message)) from None
    if result.hardware != path.parent.name:
        message = (
            f"demanded hardware {path.parent.name!r} in this folder; got {result.hardware!r:.80}"
        )
        raise DamagedResultError(Fault(path, 1, 1, message))
    return result


def _refusals(path: Path, root: Path) -> Iterator[str]:
    """Reasons not to open a file at all."""
    if _leaves(path, root):
        yield "demanded a file inside the results folder; got a link that leaves it"
    elif path.exists():
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            yield "demanded a regular file; got something else"
        elif status.st_size > MAX_FILE_BYTES:
            yield f"demanded at most {MAX_FILE_BYTES} bytes; got {status.st_size}"


def _leaves(path: Path, root: Path) -> bool:
    """Whether links lead out of the folder; a file and a folder that are none need no resolving."""
    if not (path.is_symlink() or path.parent.is_symlink()):
        return False
    return not path.resolve().is_relative_to(root.resolve())
