"""Cells of a launch: a trial or a sweep on a kind of machine, their queue and their results."""

from __future__ import annotations

import datetime as dt
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from epochcost.plan.make import Plan
from epochcost.plan.trial import Trial
from epochcost.results.fields import read_record
from epochcost.results.files import write_atomically
from epochcost.results.records import DamagedResultError, Result, parse_result
from epochcost.results.rounds import round_count
from epochcost.results.sidecar_faults import sidecar_faults
from epochcost.results.sidecars import BatchLimit
from epochcost.results.store import file_name
from epochcost.results.submissions import check_results
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.target import Target


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """A trial, or a sweep with the trial of its smallest batch, to measure on a kind of machine."""

    hardware: str
    id: str
    trial: Trial
    rounds: int
    swept: bool = False

    @property
    def title(self) -> str:
        """A title of the cell for people: its trial, or the sweep."""
        return f"{self.trial.title}{' and larger' if self.swept else ''}"

    @property
    def stem(self) -> str:
        """The path of the cell's result in a folder of results, without the host."""
        trial = self.trial
        if not self.swept:
            name = file_name(trial, self.id, "").removesuffix("-.json")
            return f"{self.hardware}/{name}"
        name = f"{trial.model}-{trial.mode}-{trial.provider}-{self.id[:8]}"
        return f"{self.hardware}/{BatchLimit.folder}/{name}"

    @property
    def kind(self) -> tuple[str, str]:
        """The machine and the provider, which targets must have to measure the cell."""
        return self.hardware, self.trial.provider


def cells_of(plan: Plan, hardware: str) -> Iterator[Cell]:
    """The cells of a plan for a machine, in the order of the plan."""
    for trial in plan.trials:
        identifier = trial.id
        yield Cell(hardware, identifier, trial, plan.rounds.get(identifier, 1))
    for sweep in plan.sweeps:
        yield Cell(hardware, sweep.id, sweep.trial, sweep.rounds, swept=True)


class Queue:
    """Cells that wait for a machine; threads may share it.

    ``losses`` counts by the cell's id how often its machine was lost.
    """

    def __init__(self, cells: Iterable[Cell]) -> None:
        self.waiting = list(cells)
        self.losses: Counter[str] = Counter()
        self._lock = threading.Lock()

    def take(self, target: Target) -> Cell | None:
        """Remove and return the first cell for a target's kind of machine; None if none waits."""
        with self._lock:
            cell = next((cell for cell in self.waiting if cell.kind == target.kind), None)
            if cell is not None:
                self.waiting.remove(cell)
            return cell

    def put_back(self, cell: Cell) -> None:
        """Put a cell at the front."""
        with self._lock:
            self.waiting.insert(0, cell)


class Intake:
    """A project's results: finds the results of cells, and adds collected files that are valid."""

    def __init__(self, catalogue: Catalogue, results: Path) -> None:
        self.results = results
        self._catalogue = catalogue
        self._paths: dict[str, list[Path]] = defaultdict(list)
        for pattern in ("*/*.json", f"*/{BatchLimit.folder}/*.json"):
            for path in results.glob(pattern):
                self._note(path)

    def _note(self, path: Path) -> None:
        stem = path.relative_to(self.results).as_posix().rpartition("-")[0]
        self._paths[stem].append(path)

    def result_of(self, cell: Cell) -> Result | BatchLimit | None:
        """The complete result of a cell from any host; None if there is none."""
        for path in self._paths.get(cell.stem, ()):
            try:
                if cell.swept:
                    return read_record(BatchLimit, path.read_bytes())
                result = parse_result(path.read_bytes(), path)
            except (DamagedResultError, OSError, ValidationError):
                continue
            if result.trial_id == cell.id and round_count(result.measurement) >= cell.rounds:
                return result
        return None

    def take_in(self, staged: Path, cell: Cell | None) -> str:
        """Copy a cell's new valid files (all new files if None) into the project's results.

        Returns the fault of a new file that is invalid, or "". Equal files are not written again.
        """
        patterns = ["*/*.json", "*/*/*.json"]
        if cell is not None and not cell.swept:
            patterns = [f"{cell.stem}-*.json", "*/ceilings/*.json"]
        places = {
            path: self.results / path.relative_to(staged)
            for pattern in patterns
            for path in sorted(staged.glob(pattern))
            if not path.is_symlink()
        }
        new = [path for path, place in places.items() if not _are_equal(path, place)]
        faults = self._faults(staged, new)
        for path in new:
            if path not in faults:
                places[path].parent.mkdir(parents=True, exist_ok=True)
                write_atomically(places[path], path.read_bytes())
                self._note(places[path])
        return next((f"{path.name}: {faults[path]}" for path in new if path in faults), "")

    def _faults(self, staged: Path, new: Iterable[Path]) -> dict[Path, str]:
        """The message of each file that the checks of submissions refuse."""
        results = [path for path in new if path.parent.parent == staged]
        faults = check_results(self._catalogue, staged, results).faults if results else ()
        others = sidecar_faults(self._catalogue, staged, dt.datetime.now(dt.UTC))
        return {fault.path.absolute(): fault.message for fault in (*faults, *others)}


def _are_equal(path: Path, place: Path) -> bool:
    return place.exists() and place.read_bytes() == path.read_bytes()
