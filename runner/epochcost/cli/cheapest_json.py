"""The answer of `epochcost cheapest` for programs: exact figures, candidates named by position."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from epochcost.cli.cheapest_words import effects_of, near_choices, switches
from epochcost.units import plain

if TYPE_CHECKING:
    from epochcost.cli.cheapest_answer import Answer
    from epochcost.cost import Candidate
    from epochcost.report.offers import Offer


def as_json(answer: Answer) -> dict[str, Any]:
    """The whole answer as JSON's values; ``choice`` and the like are positions of candidates."""
    from epochcost.cost import frontier

    listed, demand = answer.ordered, answer.demand
    place = {id(one): number for number, one in enumerate(listed)}
    best = {id(one) for one in frontier(listed)}
    return {
        "model": demand.model,
        "mode": demand.mode,
        "order": "fastest" if demand.fastest else "cheapest",
        "deadline_seconds": _digits(demand.deadline_seconds),
        "budget": _digits(demand.budget),
        "choice": place[id(answer.choice)],
        "may_be_as_cheap": [place[id(one)] for one in near_choices(answer)],
        "candidates": [_candidate(one) | {"on_frontier": id(one) in best} for one in listed],
        "effects": list(_effects(answer)),
        "changes_at": list(_turns(answer, place)),
        "as_accurate": {
            "batch_size": answer.batch.batch_size,
            "demanded_percent": _digits(answer.batch.demanded),
            "unknown_batch_sizes": list(answer.batch.unknown),
        },
        "unpriced": [
            {"machine": row.observed.machine.name, "plan": row.plan, "reason": reason}
            for row, reason in answer.offers.unpriced
        ],
    }


def _effects(answer: Answer) -> Iterator[dict[str, str | None]]:
    for one in effects_of(answer):
        yield {
            "input": one.name,
            "value": plain(one.value),
            "cost_at_0.9": _digits(one.lower),
            "cost_at_1.1": _digits(one.higher),
        }


def _turns(answer: Answer, place: dict[int, int]) -> Iterator[dict[str, str | int]]:
    for one in switches(answer):
        yield {
            "candidate": place[id(one.changed)],
            "against": place[id(one.other)],
            "input": one.switch.name,
            "now": plain(one.switch.now),
            "value": plain(one.switch.value),
        }


def _candidate(one: Candidate[Offer]) -> dict[str, Any]:
    row, cost, largest = one.key.row, one.cost, one.key.interval.largest
    return {
        "machine": row.observed.machine.name,
        "hardware": row.observed.machine.hardware,
        "price": cost.price_id,
        "software": row.observed.software,
        "batch_size": row.observed.batch_size,
        "seconds": plain(one.seconds),
        "cost": plain(cost.mean),
        "low": plain(cost.low) if cost.bounded else None,
        "high": plain(cost.high),
        "currency": cost.currency,
        "price_as_of": str(one.key.job.price.as_of),
        "figures": row.mark,
        "least_sure": largest.name if largest else None,
    }


def _digits(value: Decimal | None) -> str | None:
    return None if value is None else plain(value)
