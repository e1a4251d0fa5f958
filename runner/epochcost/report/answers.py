"""The questions that readers come with, answered from rows: what is cheapest, what is fastest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from epochcost.cost import Candidate, Estimate, Time, cheapest, frontier, rivals
from epochcost.report.rows import Goal, Row


@dataclass(frozen=True, slots=True)
class Choice:
    """A row as the answer to a goal."""

    row: Row
    time: Time
    cost: Estimate | None


@dataclass(frozen=True, slots=True)
class Answer:
    """The cheapest and the fastest way to a goal, among current prices in one currency.

    ``rivals`` are those whose cost's interval reaches into the best's: they may be as cheap.
    Where the cheapest has an assumed price, ``listed`` is the cheapest at somebody's price list.
    ``machines`` counts the machines compared, ``unpriced`` the rows without a price.
    """

    goal: Goal
    cheapest: Choice | None
    listed: Choice | None
    fastest: Choice
    rivals: tuple[Row, ...]
    machines: int
    unpriced: int


def answer(rows: Sequence[Row], goal: Goal) -> Answer | None:
    """The answer for the rows of one workload; None where nothing was timed."""
    choices = [choice for row in rows if row.answers for choice in _choices(row, goal)]
    if not choices:
        return None
    candidates = _candidates(rows, goal)
    best = cheapest(candidates)
    return Answer(
        goal=goal,
        cheapest=_choice(best, goal) if best else None,
        listed=_listed(candidates, goal) if best and best.key.assumed else None,
        fastest=min(choices, key=_fastest_first),
        rivals=tuple(one.key for one in rivals(best, candidates)) if best else (),
        machines=len({choice.row.observed.machine for choice in choices}),
        unpriced=sum(choice.cost is None for choice in choices),
    )


def _listed(candidates: Iterable[Candidate[Row]], goal: Goal) -> Choice | None:
    best = cheapest(one for one in candidates if not one.key.assumed)
    return _choice(best, goal) if best else None


def on_frontier(rows: Iterable[Row], goal: Goal) -> tuple[Row, ...]:
    """The rows that no other beats in both time and cost, fastest first."""
    return tuple(one.key for one in frontier(_candidates(rows, goal)))


def _choices(row: Row, goal: Goal) -> Iterable[Choice]:
    time = row.time(goal)
    return [] if time is None else [Choice(row, time, row.estimate(goal))]


def _candidates(rows: Iterable[Row], goal: Goal) -> list[Candidate[Row]]:
    """Rows that may answer and have a cost, in the currency that most of them have."""
    found = [
        Candidate(row, time.mean, estimate)
        for row in rows
        if row.answers and (time := row.time(goal)) and (estimate := row.estimate(goal))
    ]
    counts = Counter(one.cost.currency for one in found)
    usual = max(sorted(counts), key=counts.__getitem__, default=None)
    return [one for one in found if one.cost.currency == usual]


def _choice(candidate: Candidate[Row], goal: Goal) -> Choice:
    time = candidate.key.time(goal)
    assert time is not None, "a candidate has a time"
    return Choice(candidate.key, time, candidate.cost)


def _fastest_first(choice: Choice) -> tuple[Decimal, Decimal]:
    return choice.time.mean, choice.cost.mean if choice.cost else Decimal("Infinity")
