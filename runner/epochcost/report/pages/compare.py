"""The page "Compare": any two machines, models or dates of prices side by side.

The browser chooses among the work and costs published here (`compare.js`) and divides; it prices
nothing. A cost holds from its price's date until a newer price of the plan, so that any two dates
can be compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import combinations
from typing import Any

from epochcost.analysis.observations import Goal, Machine, Observation, Workload
from epochcost.analysis.rows import GOALS, Row, answer, at_every_price, group_by
from epochcost.report.escape import one_line
from epochcost.report.pages.page import Page, Report, machine_uri, workload_uri
from epochcost.report.wording import goal_clause
from epochcost.specs.catalogue import supersedes
from epochcost.specs.price import Price

Json = dict[str, Any]
URI = "data/compare.js"


@dataclass(frozen=True)
class Pair:
    """Two machines over the jobs that both have a cost for, each in its cheapest way.

    ``least`` and ``most`` are the first's cost over the second's, where it is lowest and highest.
    """

    first: Machine
    second: Machine
    jobs: int
    first_cheaper: int
    first_faster: int
    least: Decimal
    most: Decimal


def pages(report: Report) -> Iterator[Page]:
    """The one page."""
    yield Page(
        uri="compare.md",
        title="Compare",
        template="compare.md.jinja",
        description="Any two machines, models or dates of prices side by side.",
        context={
            "priced": any(row.price for row in report.rows),
            "pairs": pairs(report),
            "data": URI,
        },
    )


def script(report: Report) -> str:
    """The data as a script, for a page opened from the disk can load one and fetch nothing."""
    data = json.dumps(comparison_data(report), separators=(",", ":"), allow_nan=False)
    return f"window.epochcostCompare={data};\n"


def comparison_data(report: Report) -> Json:
    """Machines, workloads, dates of prices, and all work with its costs."""
    rows = at_every_price(report.catalogue, report.observations)
    priced = [row for row in rows if any(row.estimate(goal) for goal in GOALS)]
    machines = {one_line(row.observed.machine.name): row.observed.machine for row in priced}
    workloads = {_workload_key(row.observed.workload): row.observed.workload for row in priced}
    return {
        "machines": {name: _page(machine_uri(one.hardware)) for name, one in _sorted(machines)},
        "models": {
            key: {"name": one_line(one.name), "page": _page(workload_uri(one))}
            for key, one in _sorted(workloads)
        },
        "dates": sorted({str(row.price.as_of) for row in priced if row.price}),
        "goals": {goal: goal_clause(goal) for goal in GOALS},
        "works": list(_works(priced)),
    }


def _sorted(items: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return sorted(items.items(), key=lambda item: item[0].casefold())


def _page(uri: str) -> str:
    return f"{uri.removesuffix('.md')}.html"


def _workload_key(workload: Workload) -> str:
    return workload.id if workload.is_model else f"published/{workload.id}"


def _works(rows: Iterable[Row]) -> Iterator[Json]:
    """One for each observation, which the rows of its prices share."""
    for priced in group_by(rows, lambda row: id(row.observed)).values():
        observed = priced[0].observed
        prices = [row.price for row in priced if row.price]
        for goal in GOALS:
            offers = [offer for row in priced if (offer := _offer(row, goal, prices))]
            if offers:
                yield _work(observed, goal, offers)


def _work(observed: Observation, goal: Goal, offers: list[Json]) -> Json:
    times = {"epoch": observed.epoch, "full": observed.full, "million": observed.million}
    time = times[goal]
    assert time is not None, "what has a cost has a time"
    return {
        "model": _workload_key(observed.workload),
        "machine": one_line(observed.machine.name),
        "goal": goal,
        "batch": observed.batch_size,
        "kind": observed.kind,
        "seconds": float(time.mean),
        "offers": offers,
    }


def _offer(row: Row, goal: Goal, prices: Sequence[Price]) -> Json | None:
    """The cost under one price, and how long that holds."""
    cost, price = row.estimate(goal), row.price
    if cost is None or price is None:
        return None
    later = [other.as_of for other in prices if supersedes(other, price)]
    return {
        "plan": one_line(row.plan),
        "assumed": price.assumed,
        "currency": cost.currency,
        "from": str(price.as_of),
        "until": str(min(later)) if later else None,
        "cost": float(cost.mean),
    }


def pairs(report: Report) -> tuple[Pair, ...]:
    """Every two machines that have a job in common, those with the most jobs first."""
    best = {
        machine: _cheapest(rows)
        for machine, rows in group_by(report.rows, lambda row: row.observed.machine).items()
    }
    ordered = sorted(best.items(), key=lambda one: one[0].name)
    found = [pair for one, other in combinations(ordered, 2) if (pair := _pair(one, other))]
    return tuple(sorted(found, key=lambda pair: -pair.jobs))


_JobKey = tuple[str, Goal]
_Choices = Mapping[_JobKey, tuple[Decimal, Decimal, str]]


def _cheapest(rows: Iterable[Row]) -> _Choices:
    """Cost, time and currency of each job, done the cheapest way."""
    found: dict[_JobKey, tuple[Decimal, Decimal, str]] = {}
    for key, mine in group_by(rows, lambda row: _workload_key(row.observed.workload)).items():
        for goal in GOALS:
            choice = given.cheapest if (given := answer(mine, goal)) else None
            if choice and choice.cost:
                found[key, goal] = choice.cost.mean, choice.time.mean, choice.cost.currency
    return found


def _pair(left: tuple[Machine, _Choices], right: tuple[Machine, _Choices]) -> Pair | None:
    (first, one), (second, other) = left, right
    common = [job for job in one if job in other and one[job][2] == other[job][2]]
    ratios = [one[job][0] / other[job][0] for job in common if other[job][0]]
    if not ratios:
        return None
    return Pair(
        first,
        second,
        len(common),
        sum(one[job][0] < other[job][0] for job in common),
        sum(one[job][1] < other[job][1] for job in common),
        min(ratios),
        max(ratios),
    )
