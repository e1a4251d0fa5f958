"""Cells of a launch: a trial or a sweep on a kind of machine, and the queues of cells."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from epochcost.plan.make import Plan
from epochcost.plan.trial import Trial
from epochcost.results.sidecars import BatchLimit
from epochcost.results.store import file_name
from epochcost.specs.target import Target


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """A trial, or a sweep with the trial of its smallest batch size, on a machine."""

    hardware: str
    id: str
    trial: Trial
    rounds: int
    swept: bool = False

    @property
    def title(self) -> str:
        """The cell's work for people."""
        return f"{self.trial.title}{' and larger' if self.swept else ''}"

    @property
    def file_stem(self) -> str:
        """The path of the cell's result below its machine's folder, without the host."""
        trial = self.trial
        if not self.swept:
            return file_name(trial, self.id, "").removesuffix("-.json")
        return f"{BatchLimit.folder}/{trial.model}-{trial.mode}-{trial.provider}-{self.id[:8]}"

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

    Targets with the same machine and provider take from the same line, so that each cell is
    measured once.
    """

    def __init__(self, cells: Iterable[Cell]) -> None:
        self._lock = threading.Lock()
        self._taken: Counter[tuple[str, str]] = Counter()
        self._lines: dict[tuple[str, str], deque[Cell]] = {}
        for cell in cells:
            self._lines.setdefault(cell.kind, deque()).append(cell)

    def take(self, target: Target, identifier: str | None = None) -> Cell | None:
        """Remove and return the next cell of a target, or its cell with this id; None if none."""
        with self._lock:
            line = self._lines.get(target.kind, deque())
            cell = next((each for each in line if identifier in (None, each.id)), None)
            if cell is not None:
                line.remove(cell)
                self._taken[cell.kind] += 1
            return cell

    def finish(self, cell: Cell, *, put_back: bool = False) -> None:
        """Note that a cell that was taken is done or failed, or ``put_back`` at the front."""
        with self._lock:
            self._taken[cell.kind] -= 1
            if put_back:
                self._lines[cell.kind].appendleft(cell)

    def is_over(self, target: Target) -> bool:
        """Whether no cell of a target waits, and none is taken that may be put back."""
        with self._lock:
            return not self._lines.get(target.kind) and not self._taken[target.kind]

    @property
    def waiting(self) -> list[Cell]:
        """The cells that wait."""
        with self._lock:
            return [cell for line in self._lines.values() for cell in line]
