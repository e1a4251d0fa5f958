"""Take collected files into the folder of results, if they pass the checks of submissions."""

from __future__ import annotations

import datetime as dt
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from epochcost.fleet.cells import Cell, stored_result
from epochcost.results.files import write_atomically
from epochcost.results.limits import BatchLimit
from epochcost.results.sidecar_faults import sidecar_faults
from epochcost.results.submissions import check_results
from epochcost.specs.catalogue import Catalogue

# Records of the machine that every cell may add.
_OF_THE_MACHINE = "ceilings/*.json"
# Patterns of all files below a machine's folder that a launch takes in.
EVERYTHING = ("*.json", f"{BatchLimit.folder}/*.json")


@dataclass(frozen=True)
class Intake:
    """The entrance to a project's folder of results."""

    catalogue: Catalogue
    results: Path

    def is_done(self, cell: Cell) -> bool:
        """Whether the folder has a complete and plausible result of a cell."""
        return stored_result(cell, self.catalogue, self.results) is not None

    def take_in(self, staged: Path, hardware: str, patterns: Iterable[str]) -> tuple[str, ...]:
        """Copy a machine's valid files from ``staged``; returns the faults of the others.

        A file that the folder already has with the same bytes is not written again.
        """
        with tempfile.TemporaryDirectory(dir=staged.parent) as folder:
            copies = Path(folder).absolute()
            for path in _new_files(staged / hardware, patterns, self.results / hardware):
                copy = copies / path.relative_to(staged)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, copy)
            faults = _faults(self.catalogue, copies)
            for copy in copies.rglob("*.json"):
                if copy not in faults:
                    place = self.results / copy.relative_to(copies)
                    place.parent.mkdir(parents=True, exist_ok=True)
                    write_atomically(place, copy.read_bytes())
            return tuple(f"{path.name}: {message}" for path, message in faults.items())


def _new_files(staged: Path, patterns: Iterable[str], results: Path) -> Iterator[Path]:
    for pattern in (*patterns, _OF_THE_MACHINE):
        for path in staged.glob(pattern):
            place = results / path.relative_to(staged)
            if path.is_symlink() or (place.exists() and place.read_bytes() == path.read_bytes()):
                continue
            yield path


def _faults(catalogue: Catalogue, root: Path) -> dict[Path, str]:
    """The message of each file below ``root`` that the checks refuse."""
    files = sorted(root.glob("*/*.json"))
    faults = check_results(catalogue, root, files).faults if files else ()
    others = sidecar_faults(catalogue, root, dt.datetime.now(dt.UTC))
    return {fault.path.absolute(): fault.message for fault in (*faults, *others)}
