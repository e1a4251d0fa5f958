"""The entrance to a project's results: collected files enter if they pass the checks."""

from __future__ import annotations

import datetime as dt
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from epochcost.fleet.cells import Cell
from epochcost.results.fields import read_record
from epochcost.results.files import write_atomically
from epochcost.results.records import DamagedResultError, Result, parse_result
from epochcost.results.rounds import round_count
from epochcost.results.sidecar_faults import sidecar_faults
from epochcost.results.sidecars import BatchLimit, Payment
from epochcost.results.store import write_sidecar
from epochcost.results.submissions import check_results
from epochcost.specs.catalogue import Catalogue

_EVERYTHING: tuple[str, ...] = ("*.json", "limits/*.json", "ceilings/*.json")


class Intake:
    """The results of a project: it finds those of cells, and takes in new files."""

    def __init__(self, catalogue: Catalogue, results: Path) -> None:
        self._catalogue = catalogue
        self._results = results
        self._paths: dict[str, list[Path]] = {}
        for path in results.glob("*/*.json"):
            self._note(path)
        for path in results.glob("*/limits/*.json"):
            self._note(path)

    def _note(self, path: Path) -> None:
        stem = path.relative_to(self._results).as_posix().rpartition("-")[0]
        self._paths.setdefault(stem, []).append(path)

    def result_of(self, cell: Cell) -> Result | BatchLimit | None:
        """The complete result of a cell from any host; None if there is none."""
        for path in self._paths.get(f"{cell.hardware}/{cell.file_stem}", ()):
            try:
                if cell.swept:
                    return read_record(BatchLimit, path.read_bytes())
                result = parse_result(path.read_bytes(), path)
            except (DamagedResultError, OSError, ValidationError):
                continue
            if result.trial_id == cell.id and round_count(result.measurement) >= cell.rounds:
                return result
        return None

    def record(self, payment: Payment) -> None:
        """Store the price that was paid for a cell."""
        write_sidecar(self._results, payment)

    def take_in(self, staged: Path, hardware: str, cell: Cell | None) -> tuple[str, ...]:
        """Copy a cell's valid files from ``staged``; returns the faults of the others.

        Without a cell, all files of the machine are taken in. Equal files are not written again.
        """
        with tempfile.TemporaryDirectory(dir=staged.parent) as folder:
            copies = Path(folder).absolute()
            for path in self._new(staged, hardware, cell):
                copy = copies / path.relative_to(staged)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, copy)
            faults = self._faults(copies)
            for copy in copies.rglob("*.json"):
                if copy not in faults:
                    place = self._results / copy.relative_to(copies)
                    place.parent.mkdir(parents=True, exist_ok=True)
                    write_atomically(place, copy.read_bytes())
                    self._note(place)
            return tuple(f"{path.name}: {message}" for path, message in faults.items())

    def _new(self, staged: Path, hardware: str, cell: Cell | None) -> Iterator[Path]:
        patterns = _EVERYTHING
        if cell is not None and not cell.swept:
            patterns = (f"{cell.file_stem}-*.json", *_EVERYTHING[-1:])
        for pattern in patterns:
            for path in (staged / hardware).glob(pattern):
                place = self._results / path.relative_to(staged)
                known = place.exists() and place.read_bytes() == path.read_bytes()
                if not known and not path.is_symlink():
                    yield path

    def _faults(self, root: Path) -> dict[Path, str]:
        """The message of each file below ``root`` that the checks of submissions refuse."""
        files = sorted(root.glob("*/*.json"))
        faults = check_results(self._catalogue, root, files).faults if files else ()
        others = sidecar_faults(self._catalogue, root, dt.datetime.now(dt.UTC))
        return {fault.path.absolute(): fault.message for fault in (*faults, *others)}
