"""A cell of `epochcost launch`: a trial or a sweep of batch sizes, for a kind of machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from epochcost.plan.make import Plan
from epochcost.plan.trial import Trial


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """A trial, or a sweep of batch sizes, to measure on a kind of machine.

    ``kind`` is the machine's id, the execution provider and the package of ONNX Runtime. For a
    sweep, ``trial`` is the trial with the smallest batch size.
    """

    kind: tuple[str, str, str]
    id: str
    trial: Trial
    rounds: int
    swept: bool = False

    @property
    def title(self) -> str:
        """A title of the cell for people: the trial, with "and larger" for a sweep."""
        return f"{self.trial.title}{' and larger' if self.swept else ''}"

    @property
    def hardware(self) -> str:
        """The id of the kind of machine, such as g6.xlarge."""
        return self.kind[0]


def cells_of(plan: Plan, kind: tuple[str, str, str]) -> Iterator[Cell]:
    """The cells of a plan for machines of one kind: first the trials, then the sweeps."""
    for trial in plan.trials:
        yield Cell(kind, trial.id, trial, plan.rounds.get(trial.id, 1))
    for sweep in plan.sweeps:
        yield Cell(kind, sweep.id, sweep.trial, sweep.rounds, swept=True)
