"""Compare costs with the budgets of studies: each limit is kept, exceeded or unknown.

The compared cost is the mean cost on the machine and price plan that `epochcost cheapest` chooses.
A limit is unknown without a suitable time or price; it fails the check, as an exceeded one does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from epochcost.analysis.answers import remedy, rows_of
from epochcost.analysis.inputs import Inputs
from epochcost.analysis.observations import Goal
from epochcost.analysis.rows import WORK_NAMES, Offer, Row, accuracies, better_known, offers
from epochcost.cost.compare import Candidate
from epochcost.errors import Fault
from epochcost.specs.catalogue import Catalogue, current_prices
from epochcost.specs.document import display_path, key_position
from epochcost.specs.study import AT_HAND, BudgetGoal, BudgetLimit, Study
from epochcost.units import money, plain, significant_places

State = Literal["kept", "exceeded", "unknown"]
_GOALS: Mapping[BudgetGoal, Goal] = {
    "epoch": "epoch",
    "full-training": "full",
    "million-inferences": "million",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """A limit in a study's budget, and whether the cost is within the limit (``state``).

    ``choice`` is the cheapest machine and price plan under the limit's conditions, such as an
    accuracy; None if no such cost is known. ``place`` has the limit's file and line, and a message
    with the allowed and the actual cost.
    """

    state: State
    place: Fault
    choice: Candidate[Offer] | None


def verdicts(inputs: Inputs) -> tuple[Verdict, ...]:
    """Judge each study's limits; raises InputError if published times or rates cannot be read."""
    studies = inputs.catalogue.studies.values()
    budgets = [(study, study.budget.limits) for study in studies if study.budget]
    models = {limit.model for _, limits in budgets for limit in limits}
    rows = rows_of(inputs, models) if models else ()
    return tuple(
        _verdict(inputs.catalogue, study, index, limit, rows)
        for study, limits in budgets
        for index, limit in enumerate(limits)
    )


def _verdict(
    catalogue: Catalogue, study: Study, index: int, limit: BudgetLimit, rows: Iterable[Row]
) -> Verdict:
    goal = _GOALS[limit.goal]
    about = [row for row in rows if _is_about(row, limit, goal)]
    priced = [
        row for row in about if (cost := row.estimate(goal)) and cost.currency == limit.currency
    ]
    accurate = [row for row in priced if _is_accurate_enough(catalogue, limit, row)]
    choice = next(iter(offers(better_known(accurate, goal), goal, Decimal(1)).candidates), None)
    state: State = "unknown"
    most = money(limit.at_most, limit.currency)
    if choice is None:
        figures = f"unknown: {_reason_why_unknown(catalogue, limit, about, has_cost=bool(priced))}"
    else:
        state = "kept" if choice.cost.mean <= limit.at_most else "exceeded"
        most, mean = _distinct_amounts(limit.at_most, choice.cost.mean, limit.currency)
        figures = f"{mean}{_details(choice, limit)}"
    conditions = (
        f" to {plain(limit.accuracy_percent)} %" if limit.accuracy_percent else "",
        f" on {limit.hardware}" if limit.hardware else "",
        f" at {limit.price}" if limit.price else "",
    )
    expected = f"{WORK_NAMES[goal]} of {limit.model}{''.join(conditions)} for at most {most}"
    place = _place(catalogue, study, index, f"{state}: expected {expected}, got {figures}")
    return Verdict(state, place, choice)


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


def _details(choice: Candidate[Offer], limit: BudgetLimit) -> str:
    row, cost = choice.key.row, choice.cost
    between = f" ({cost.between})" if cost.between else ""
    straddles = cost.mean <= limit.at_most < cost.high
    doubt = ", with a range that exceeds the limit" if straddles else ""
    where = f"{row.observed.machine.hardware}, batch {row.observed.batch_size}"
    return f"{between}{doubt} on {where}, {cost.price_id} ({row.mark})"


def _distinct_amounts(first: Decimal, second: Decimal, currency: str) -> tuple[str, str]:
    """Format two amounts with as many digits as are needed to show which one is larger."""
    texts = money(first, currency), money(second, currency)
    digits = 3
    while texts[0] == texts[1] and first != second:
        places = significant_places(first, digits)
        texts = money(first, currency, places), money(second, currency, places)
        digits += 1
    return texts


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
    what_to_do = remedy(catalogue, limit.model, _GOALS[limit.goal], limit.hardware or AT_HAND)
    return f"neither measured nor predicted{there}{what_to_do}"
