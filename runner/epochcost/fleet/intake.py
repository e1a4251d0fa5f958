"""Find the results of the cells of a launch, and copy new result files into the project."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from pydantic import ValidationError

from epochcost.plan.cell import Cell
from epochcost.results.fields import read_record
from epochcost.results.files import write_atomically
from epochcost.results.records import DamagedResultError, Result, parse_result
from epochcost.results.rounds import round_count
from epochcost.results.sidecars import BatchLimit
from epochcost.results.store import ID_DIGITS
from epochcost.results.submissions import check_results
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.document import display_path

# Results, and other records of a machine.
_ALL = ("*/*.json", "*/*/*.json")


class Intake:
    """Finds the results of trials, and copies valid new files from the measuring machines."""

    def __init__(self, catalogue: Catalogue, results: Path) -> None:
        self.catalogue, self.results = catalogue, results
        # By machine and first digits of the trial's or the sweep's id, which end the file's name.
        # Searching a folder for each of ten thousand cells would take seconds.
        self._paths: defaultdict[tuple[str, str], set[Path]] = defaultdict(set)
        self._note(path for pattern in _ALL for path in results.glob(pattern))

    def _note(self, paths: Iterable[Path]) -> None:
        for path in paths:
            machine = path.relative_to(self.results).parts[0]
            self._paths[machine, path.stem.split("-")[-2:][0]].add(path)

    def result_of(self, cell: Cell) -> Result | BatchLimit | None:
        """The stored result of a cell (a trial or a sweep); None if missing or incomplete.

        A trial's result is complete if it has all rounds, from a single host.
        """
        # A copy, because another station's thread may add a path meanwhile.
        for path in tuple(self._paths.get((cell.hardware, cell.id[:ID_DIGITS]), ())):
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
        """Copy new valid files of ``staged`` to the results; return the first fault, or "".

        If ``cell`` is a trial, copies only its results and the files in ``ceilings`` folders.
        """
        patterns = _ALL
        if cell is not None and not cell.swept:
            patterns = (f"*/*-{cell.id[:ID_DIGITS]}-*.json", "*/ceilings/*.json")
        new = {
            path: place
            for pattern in patterns
            for path in sorted(staged.glob(pattern))
            for place in [self.results / path.relative_to(staged)]
            if not (place.exists() and place.read_bytes() == path.read_bytes())
        }
        faults = check_results(self.catalogue, staged, tuple(new)).faults if new else ()
        messages = {fault.path: f"{fault.path.name}: {fault.message}" for fault in faults}
        for path, place in new.items():
            if display_path(path) not in messages:
                place.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(place, path.read_bytes())
                self._note([place])
        return next(iter(messages.values()), "")
