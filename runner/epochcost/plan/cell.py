"""A cell of a launch: a trial or a sweep of batch sizes on a kind of machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from epochcost.plan.make import Plan
from epochcost.plan.trial import Trial


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """A trial, or a sweep of batch sizes, to measure on a kind of machine.

    ``hardware`` is the machine's id. ``id`` is the id of the trial or sweep. Each trial is measured
    ``rounds`` times. For a sweep, ``trial`` is the trial with the smallest batch size.
    """

    hardware: str
    id: str
    trial: Trial
    rounds: int
    swept: bool = False

    @property
    def title(self) -> str:
        """A title of the cell for people: the trial, with "and larger" for a sweep."""
        return f"{self.trial.title}{' and larger' if self.swept else ''}"

    @property
    def kind(self) -> tuple[str, str]:
        """The machine and the execution provider on which the cell must be measured."""
        return self.hardware, self.trial.provider


def cells_of(plan: Plan, hardware: str) -> Iterator[Cell]:
    """The cells of a plan for the machine ``hardware``: first the trials, then the sweeps."""
    for trial in plan.trials:
        identifier = trial.id
        yield Cell(hardware, identifier, trial, plan.rounds.get(identifier, 1))
    for sweep in plan.sweeps:
        yield Cell(hardware, sweep.id, sweep.trial, sweep.rounds, swept=True)
