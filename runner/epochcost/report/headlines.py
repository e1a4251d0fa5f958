"""A workload's answer in one line: what its cheapest epoch or million costs, where, how surely."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from textwrap import shorten

from epochcost.analysis.observations import Goal
from epochcost.analysis.rows import Answer, Choice
from epochcost.report.escape import one_line
from epochcost.units import money

_JOBS: Mapping[Goal, str] = {"epoch": "cheapest epoch", "million": "cheapest million inferences"}
# Of a machine, so that a badge stays a badge.
_LONGEST_NAME = 44


@dataclass(frozen=True, slots=True)
class Headline:
    """``where`` names machine, date of the price, and what the figure is unless measured."""

    job: str
    amount: str
    where: str


def headline(answers: Mapping[Goal, Answer]) -> Headline | None:
    """The cheapest epoch, else the cheapest million; None where nothing has a price.

    A price that somebody asks goes before an assumed one.
    """
    for goal, job in _JOBS.items():
        found = answers.get(goal)
        choice = (found.listed or found.cheapest) if found else None
        if choice is not None and choice.cost is not None:
            return Headline(job, money(choice.cost.mean, choice.cost.currency), _where(choice))
    return None


def _where(choice: Choice) -> str:
    row = choice.row
    said = [f"on {shorten(one_line(row.observed.machine.name), _LONGEST_NAME, placeholder='…')}"]
    if row.price is not None:
        said.append(f"{'assumed price' if row.assumed else 'price'} of {row.price.as_of:%Y-%m}")
    if row.observed.kind == "published":
        said.append("time published by others")
    return ", ".join(said)
