"""Cells of a launch: a trial or a sweep to measure on a kind of machine, and the queues of cells.

A cell is done if the folder of results has its complete result from any host of that machine.
Targets with the same machine and provider share a queue, so that each cell is measured once.
"""

from __future__ import annotations

import datetime as dt
import threading
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from epochcost.plan.make import Plan
from epochcost.plan.trial import Trial
from epochcost.results.checks import Claim, first_fault
from epochcost.results.fields import read_record
from epochcost.results.format import DamagedResultError, parse_result
from epochcost.results.limits import BatchLimit
from epochcost.results.records import Result
from epochcost.results.rounds import round_count
from epochcost.results.store import file_name
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.target import Target

# The digits of a host at the end of a file's name.
_ANY_HOST = "?" * 4


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """A trial on a machine; for a sweep, ``trial`` is the trial of its smallest batch size.

    ``id`` is the id of the trial or of the sweep.
    """

    hardware: str
    id: str
    trial: Trial
    rounds: int
    swept: bool

    @property
    def title(self) -> str:
        """The cell's work for people."""
        return f"{self.trial.title}{' and larger' if self.swept else ''}"

    @property
    def files(self) -> tuple[str, ...]:
        """Patterns of the cell's files below the folder of its machine's results."""
        trial = self.trial
        if not self.swept:
            return (file_name(trial, self.id, _ANY_HOST),)
        work = f"{trial.model}-{trial.mode}-{trial.provider}"
        return f"{work}-b*.json", f"{BatchLimit.folder}/{work}-{self.id[:8]}-{_ANY_HOST}.json"


def cells_of(plan: Plan, hardware: str) -> Iterator[Cell]:
    """The cells of a plan for a machine, in the order of the plan."""
    for trial in plan.trials:
        identifier = trial.id
        yield Cell(hardware, identifier, trial, plan.rounds.get(identifier, 1), swept=False)
    for sweep in plan.sweeps:
        yield Cell(hardware, sweep.id, sweep.trial, sweep.rounds, swept=True)


def without_done(cells: Iterable[Cell], catalogue: Catalogue, results: Path) -> list[Cell]:
    """The cells that ``results`` has no complete and plausible result of."""
    stored: dict[str, dict[str, list[Path]]] = {}
    waiting = []
    for cell in cells:
        if cell.hardware not in stored:
            stored[cell.hardware] = _stored(results / cell.hardware)
        paths = stored[cell.hardware].get(_work(cell.files[-1]), ())
        if result_of(cell, catalogue, paths) is None:
            waiting.append(cell)
    return waiting


def _stored(folder: Path) -> dict[str, list[Path]]:
    """The files of results and of sweeps below a machine's folder, by name without the host."""
    paths: dict[str, list[Path]] = {}
    for path in (*folder.glob("*.json"), *folder.glob(f"{BatchLimit.folder}/*.json")):
        paths.setdefault(_work(path.relative_to(folder).as_posix()), []).append(path)
    return paths


def _work(name: str) -> str:
    return name.rpartition("-")[0]


def stored_result(cell: Cell, catalogue: Catalogue, results: Path) -> Result | BatchLimit | None:
    """The complete and plausible result of a cell, or the record of its sweep; None if missing."""
    return result_of(cell, catalogue, (results / cell.hardware).glob(cell.files[-1]))


def result_of(
    cell: Cell, catalogue: Catalogue, paths: Iterable[Path]
) -> Result | BatchLimit | None:
    """The first complete and plausible result of a cell among files; None if there is none."""
    for path in paths:
        try:
            content = path.read_bytes()
            if cell.swept:
                limit = read_record(BatchLimit, content)
                if limit.sweep_id == cell.id and limit.cause != "failure":
                    return limit
                continue
            result = parse_result(content, path)
        except (DamagedResultError, OSError, ValidationError):
            continue
        whole = result.trial_id == cell.id and round_count(result.measurement) >= cell.rounds
        if whole and first_fault(Claim(result, catalogue, dt.datetime.now(dt.UTC))) is None:
            return result
    return None


class Queue:
    """Cells that wait for a machine, by its hardware and provider; threads may share it."""

    def __init__(self, cells: Iterable[Cell]) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[tuple[str, str], deque[Cell]] = {}
        self._taken: Counter[tuple[str, str]] = Counter()
        for cell in cells:
            self._waiting.setdefault(_kind(cell), deque()).append(cell)

    def take(self, target: Target, identifier: str | None = None) -> Cell | None:
        """Remove and return the next cell of a target, or its cell with this id; None if none."""
        with self._lock:
            waiting = self._waiting.get((target.hardware, target.provider), deque())
            cell = next((each for each in waiting if identifier in (None, each.id)), None)
            if cell is not None:
                waiting.remove(cell)
                self._taken[_kind(cell)] += 1
            return cell

    def put_back(self, cell: Cell) -> None:
        """Add a cell that was taken at the front again."""
        with self._lock:
            self._waiting[_kind(cell)].appendleft(cell)
            self._taken[_kind(cell)] -= 1

    def finish(self, cell: Cell) -> None:
        """Note that a cell that was taken is done, or failed for good."""
        with self._lock:
            self._taken[_kind(cell)] -= 1

    def is_over(self, target: Target) -> bool:
        """Whether no cell waits for machines like a target, nor may be put back."""
        kind = target.hardware, target.provider
        with self._lock:
            return not self._waiting.get(kind) and not self._taken[kind]

    def waiting(self) -> Iterator[Cell]:
        """The cells that wait."""
        with self._lock:
            yield from [cell for cells in self._waiting.values() for cell in cells]


def _kind(cell: Cell) -> tuple[str, str]:
    return cell.hardware, cell.trial.provider
