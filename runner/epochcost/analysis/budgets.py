"""Budgets of studies against what is known: kept, exceeded, or unknown, with the figures.

The means decide; that an interval reaches beyond the limit is said. What nobody measured, or has no
price, is unknown, which is no keeping of a budget.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Literal

from epochcost.analysis.inputs import Inputs
from epochcost.analysis.observations import Goal, observe
from epochcost.analysis.rows import Row, accuracies, price_rows
from epochcost.cost import Estimate
from epochcost.errors import Fault
from epochcost.specs.catalogue import Catalogue, current_prices
from epochcost.specs.document import display_path, key_position
from epochcost.specs.price import Price
from epochcost.specs.study import BudgetGoal, BudgetLimit, Study
from epochcost.units import money, plain

State = Literal["kept", "exceeded", "unknown"]
_GOALS: dict[BudgetGoal, tuple[Goal, str]] = {
    "epoch": ("epoch", "an epoch"),
    "full-training": ("full", "a full training"),
    "million-inferences": ("million", "a million inferences"),
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """One limit and what became of it; ``place`` is where it stands, its message the figures.

    ``row`` is what costs least under the limit's conditions, None where nothing is known.
    """

    study: str
    limit: BudgetLimit
    state: State
    place: Fault
    row: Row | None = None

    @property
    def cost(self) -> Estimate | None:
        """What the goal costs; None where it is unknown."""
        return self.row.estimate(_GOALS[self.limit.goal][0]) if self.row else None


def verdicts(inputs: Inputs) -> tuple[Verdict, ...]:
    """Every limit of every study, in the order of the files."""
    catalogue = inputs.catalogue
    budgets = [study for study in catalogue.studies.values() if study.budget]
    models = {limit.model for study in budgets for limit in _limits(study)}
    rows = price_rows(catalogue, observe(inputs, workloads=models))
    return tuple(
        _verdict(catalogue, study, index, rows)
        for study in budgets
        for index in range(len(_limits(study)))
    )


def _limits(study: Study) -> Sequence[BudgetLimit]:
    return study.budget.limits if study.budget else ()


def _verdict(catalogue: Catalogue, study: Study, index: int, rows: Iterable[Row]) -> Verdict:
    limit = _limits(study)[index]
    goal, words = _GOALS[limit.goal]
    expected = f"{words} of {limit.model}{_conditions(limit)} for at most {_money(limit)}"
    fit = [row for row in rows if _fits(row, limit, goal)]
    best = min(_of_accuracy(catalogue, limit, fit), key=lambda row: _mean(row, goal), default=None)
    if best is None:
        state: State = "unknown"
        got = f"unknown: {_reason(catalogue, limit, goal, rows, fit)}"
    else:
        state = "kept" if _mean(best, goal) <= limit.at_most else "exceeded"
        got = _figures(best, goal, limit)
    place = _place(catalogue, study, index, f"{state}: expected {expected}, got {got}")
    return Verdict(study.id, limit, state, place, best)


def _place(catalogue: Catalogue, study: Study, index: int, message: str) -> Fault:
    path = catalogue.files.get(f"studies/{study.id}", Path(f"{study.id}.toml"))
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    key = ("budget", "limits", index)
    return Fault(display_path(path), *key_position(text, key), f"budget.limits[{index}]: {message}")


def _conditions(limit: BudgetLimit) -> str:
    words = [
        f" to {plain(limit.accuracy_percent)} %" if limit.accuracy_percent else "",
        f" on {limit.hardware}" if limit.hardware else "",
        f" at {limit.price}" if limit.price else "",
    ]
    return "".join(words)


def _money(limit: BudgetLimit) -> str:
    return money(limit.at_most, limit.currency)


def _fits(row: Row, limit: BudgetLimit, goal: Goal) -> bool:
    """Whether a row is about the limit's goal, and its cost is known in the limit's currency."""
    if not _is_about(row, limit, goal):
        return False
    estimate = row.estimate(goal)
    return estimate is not None and estimate.currency == limit.currency


def _is_about(row: Row, limit: BudgetLimit, goal: Goal) -> bool:
    if row.observed.workload.id != limit.model or not row.answers or row.time(goal) is None:
        return False
    of_machine = limit.hardware in {None, row.observed.machine.hardware}
    return of_machine and limit.price in {None, row.price.id if row.price else None}


def _of_accuracy(catalogue: Catalogue, limit: BudgetLimit, rows: Iterable[Row]) -> Iterator[Row]:
    """The rows whose training reaches the accuracy: by the model's source, or a published table."""
    wanted = limit.accuracy_percent
    own = catalogue.models[limit.model].accuracy_percent
    by_batch = accuracies(catalogue, limit.model) if wanted is not None else {}
    for row in rows:
        known = by_batch.get(row.observed.batch_size)
        reached = [known.percent] if known else []
        reached += [own] if own is not None else []
        if wanted is None or any(percent >= wanted for percent in reached):
            yield row


def _mean(row: Row, goal: Goal) -> Decimal:
    estimate = row.estimate(goal)
    assert estimate is not None, "rows that fit have a cost"
    return estimate.mean


def _figures(row: Row, goal: Goal, limit: BudgetLimit) -> str:
    estimate = row.estimate(goal)
    assert estimate is not None, "rows that fit have a cost"
    mean = money(estimate.mean, estimate.currency)
    between = f" ({estimate.between})" if estimate.between else ""
    doubt = ", which reaches beyond the limit" if _straddles(estimate, limit) else ""
    where = f"{row.observed.machine.hardware}, batch {row.observed.batch_size}"
    price = f"{row.price.id}{' (assumed)' if row.assumed else ''}" if row.price else "no price"
    return f"{mean}{between}{doubt} on {where}, {price}"


def _straddles(estimate: Estimate, limit: BudgetLimit) -> bool:
    return estimate.mean <= limit.at_most < estimate.high


def _reason(
    catalogue: Catalogue, limit: BudgetLimit, goal: Goal, rows: Iterable[Row], fit: Sequence[Row]
) -> str:
    """Why nothing can be said, and what to do."""
    if fit:
        wanted = plain(limit.accuracy_percent or Decimal(0))
        return f"no source says that a training that was timed reaches {wanted} %"
    if limit.price and catalogue.prices[limit.price] not in _current(catalogue, limit.price):
        return f"{limit.price} is superseded by a newer price"
    about = [row for row in rows if _is_about(row, limit, goal)]
    if about:
        return f"no price in {limit.currency} is known for {about[0].observed.machine.hardware}"
    there = f" on {limit.hardware}" if limit.hardware else ""
    return f"not measured{there}: `epochcost run --model {limit.model}`"


def _current(catalogue: Catalogue, price: str) -> tuple[Price, ...]:
    return current_prices(catalogue.prices_of(catalogue.prices[price].hardware))
