"""Compare costs with the budgets of studies: each limit is kept, exceeded or unknown.

The mean cost of the cheapest price decides. A price with a drawback (it is assumed, say) decides
only if all prices have one. If only the high end of the cost is above the limit, the verdict says
so. A limit is unknown if the workload has no suitable time or price. An unknown limit does not
pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from epochcost.analysis.inputs import Inputs
from epochcost.analysis.observations import Goal, observe
from epochcost.analysis.rows import Row, accuracies, price_rows
from epochcost.cost import Estimate
from epochcost.errors import Fault
from epochcost.specs.catalogue import Catalogue, current_prices
from epochcost.specs.document import display_path, key_position
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
    """A limit in a study's budget, and whether the cost is within the limit (``state``).

    ``hardware`` and ``price`` are the ids of the machine and the price plan whose cost decides,
    under the limit's conditions, such as an accuracy. ``cost`` is this cost. All three are None if
    no cost is known under these conditions; ``state`` is then "unknown". ``place`` has the limit's
    file and line, and a message with the allowed and the actual cost.
    """

    study: str
    limit: BudgetLimit
    state: State
    place: Fault
    cost: Estimate | None
    hardware: str | None
    price: str | None


def verdicts(inputs: Inputs) -> tuple[Verdict, ...]:
    """Judge every limit in the budget of every study, in the order of the files."""
    studies = inputs.catalogue.studies.values()
    budgets = [(study, study.budget.limits) for study in studies if study.budget]
    models = {limit.model for _, limits in budgets for limit in limits}
    rows = price_rows(inputs.catalogue, observe(inputs, workloads=models))
    return tuple(
        _verdict(inputs.catalogue, study, index, limit, rows)
        for study, limits in budgets
        for index, limit in enumerate(limits)
    )


def _verdict(
    catalogue: Catalogue, study: Study, index: int, limit: BudgetLimit, rows: Iterable[Row]
) -> Verdict:
    goal, goal_words = _GOALS[limit.goal]
    about = [row for row in rows if _is_about(row, limit, goal)]
    costs = [(row, row.estimate(goal)) for row in about]
    priced = [(row, cost) for row, cost in costs if cost and cost.currency == limit.currency]
    accurate = [(row, cost) for row, cost in priced if _is_accurate_enough(catalogue, limit, row)]
    row, cost = min(accurate, key=_surest_first, default=(None, None))
    state: State = "unknown"
    if row is None or cost is None:
        figures = f"unknown: {_reason_why_unknown(catalogue, limit, about, has_cost=bool(priced))}"
    else:
        state = "kept" if cost.mean <= limit.at_most else "exceeded"
        figures = _figures(row, cost, limit)
    conditions = (
        f" to {plain(limit.accuracy_percent)} %" if limit.accuracy_percent else "",
        f" on {limit.hardware}" if limit.hardware else "",
        f" at {limit.price}" if limit.price else "",
    )
    most = money(limit.at_most, limit.currency)
    expected = f"{goal_words} of {limit.model}{''.join(conditions)} for at most {most}"
    place = _place(catalogue, study, index, f"{state}: expected {expected}, got {figures}")
    hardware = row.observed.machine.hardware if row else None
    price = cost.price_id if cost else None
    return Verdict(study.id, limit, state, place, cost, hardware, price)


def _surest_first(pair: tuple[Row, Estimate]) -> tuple[bool, Decimal]:
    row, cost = pair
    return bool(row.reservation), cost.mean


def _place(catalogue: Catalogue, study: Study, index: int, message: str) -> Fault:
    path, key = catalogue.files[f"studies/{study.id}"], ("budget", "limits", index)
    position = key_position(path.read_text(encoding="utf-8"), key)
    return Fault(display_path(path), *position, f"budget.limits[{index}]: {message}")


def _is_about(row: Row, limit: BudgetLimit, goal: Goal) -> bool:
    if row.observed.workload.id != limit.model or not row.answers or row.time(goal) is None:
        return False
    of_machine = limit.hardware in {None, row.observed.machine.hardware}
    return of_machine and limit.price in {None, row.price.id if row.price else None}


def _is_accurate_enough(catalogue: Catalogue, limit: BudgetLimit, row: Row) -> bool:
    if limit.accuracy_percent is None:
        return True
    published = accuracies(catalogue, limit.model).get(row.observed.batch_size)
    declared = catalogue.models[limit.model].accuracy_percent
    stated = (published.percent if published else None, declared)
    return any(percent is not None and percent >= limit.accuracy_percent for percent in stated)


def _figures(row: Row, cost: Estimate, limit: BudgetLimit) -> str:
    between = f" ({cost.between})" if cost.between else ""
    straddles = cost.mean <= limit.at_most < cost.high
    doubt = ", with a range that exceeds the limit" if straddles else ""
    where = f"{row.observed.machine.hardware}, batch {row.observed.batch_size}"
    price = f"{cost.price_id}{' (assumed)' if row.assumed else ''}"
    return f"{money(cost.mean, cost.currency)}{between}{doubt} on {where}, {price}"


def _reason_why_unknown(
    catalogue: Catalogue, limit: BudgetLimit, timed: Sequence[Row], *, has_cost: bool
) -> str:
    if has_cost:
        percent = plain(limit.accuracy_percent or Decimal(0))
        return f"no source states {percent} % for a timed training"
    price = limit.price and catalogue.prices[limit.price]
    if price and price not in current_prices(catalogue.prices_of(price.hardware)):
        return f"{price.id} is superseded by a newer price"
    if timed:
        return f"no price in {limit.currency} is known for {timed[0].observed.machine.hardware}"
    there = f" on {limit.hardware}" if limit.hardware else ""
    return f"not measured{there}: `epochcost run --model {limit.model}`"
