"""A comparison for programs: every changed cost with exact amounts, as decimal strings."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from epochcost.cost.estimate import Unpriced

if TYPE_CHECKING:
    from epochcost.cost import Cost
    from epochcost.report.difference.changes import ChangedCost, Difference, Winner
    from epochcost.report.difference.results import ResultFile
    from epochcost.report.priced_jobs import PricedWork
    from epochcost.statistics.change import TimeChange


def as_json(difference: Difference) -> dict[str, Any]:
    """Every list is there, empty where nothing changes."""
    results = difference.results
    return {
        "before": difference.before,
        "after": difference.after,
        "costs": [_cost_change(one) for one in difference.costs],
        "winners": [_winner(one) for one in difference.winners],
        "recomputed": [asdict(one) for one in difference.recomputed],
        "results": {
            "added": [_file(one) for one in results.added],
            "removed": [_file(one) for one in results.removed],
            "measured_again": [_file(one) for one in results.measured_again],
            "stale": [_file(one) for one in results.stale],
        },
        "measured_again_unchanged": difference.unsure,
        "left_out": list(difference.problems),
    }


def _cost_change(one: ChangedCost) -> dict[str, Any]:
    return {
        "job": asdict(one.job),
        "before": _side(one.before.price.id if one.before and one.before.price else None)
        | _cost(one.before.basis.cost if one.before else None),
        "after": _side(one.after.price.id if one.after and one.after.price else None)
        | _cost(one.after.basis.cost if one.after else None),
        "change": None if one.amount is None else str(one.amount),
        "relative": one.relative,
        "why": [
            {
                "cause": reason.cause,
                "words": reason.words,
                "amount": None if reason.part is None else str(reason.part.amount),
            }
            for reason in one.reasons
        ],
        "time": _time(one.time),
    }


def _side(price: str | None) -> dict[str, Any]:
    return {"price": price}


def _cost(cost: Cost | None) -> dict[str, Any]:
    """The state says why there is no amount: no such plan there, or no price that is known."""
    if cost is None:
        return {"state": "absent"}
    if isinstance(cost, Unpriced):
        return {"state": "unknown", "reason": cost.reason}
    ends = {"low": str(cost.low), "mean": str(cost.mean), "high": str(cost.high)}
    return {"state": "known", **ends, "currency": cost.currency, "assumed": cost.assumed}


def _time(time: TimeChange | None) -> dict[str, Any] | None:
    if time is None:
        return None
    factor = time.factor
    return {
        "factor": factor.mean,
        "low": factor.low,
        "high": factor.high,
        "significant": time.significant,
    }


def _winner(one: Winner) -> dict[str, Any]:
    return {
        "subject": one.subject,
        "goal": one.goal,
        "before": _choice(one.before),
        "after": _choice(one.after),
        "sure": one.sure,
    }


def _choice(work: PricedWork | None) -> dict[str, Any] | None:
    if work is None:
        return None
    job = work.job
    return {
        "hardware": job.hardware,
        "host": job.host,
        "device": job.device,
        "batch_size": job.batch_size,
        "price": work.price.id if work.price else None,
        "source": job.source,
    } | _cost(work.basis.cost)


def _file(one: ResultFile) -> dict[str, Any]:
    return asdict(one) | {"doubts": list(one.doubts)}
