"""The words of a comparison that the terminal, the comment and the page share."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from epochcost.cost.estimate import Unpriced
from epochcost.units import money

if TYPE_CHECKING:
    from decimal import Decimal

    from epochcost.cost import Cost
    from epochcost.cost.estimate import Estimate
    from epochcost.report.difference.changes import ChangedCost, Difference, Winner
    from epochcost.report.priced_jobs import Job
    from epochcost.report.rows import Goal, Row
    from epochcost.specs.price import Price

GOALS: Mapping[Goal, str] = MappingProxyType(
    {"epoch": "one epoch", "full": "full training", "million": "a million inferences"}
)
# Changes are ordered as they are shown: what one price does to many costs stands together.
_DIGITS = 3
HEADER = ("job", "machine", "plan", "before", "after", "change", "why")


def shown_costs(difference: Difference) -> tuple[ChangedCost, ...]:
    """The changes less the epochs whose full training stands beside them under the same plan."""
    full = {(one.job.work, _plan_id(one)) for one in difference.costs if one.job.goal == "full"}
    return tuple(
        one
        for one in difference.costs
        if one.job.goal != "epoch" or (one.job.work, _plan_id(one)) not in full
    )


def by_size(costs: tuple[ChangedCost, ...]) -> tuple[ChangedCost, ...]:
    """What came, went or changed most first; equals in their order."""
    return tuple(sorted(costs, key=lambda one: -_size(one)))


def _size(one: ChangedCost) -> float:
    relative = one.relative
    return float("inf") if relative is None else round(abs(relative), _DIGITS)


def _plan_id(one: ChangedCost) -> tuple[str, ...]:
    return tuple(side.price.id if side and side.price else "" for side in (one.before, one.after))


def summary(difference: Difference) -> str:
    """One line: how many costs rise, fall, come or go, and what else is other than before."""
    costs = shown_costs(difference)
    relatives = [one.relative for one in costs]
    counts = {
        "up": sum(one is not None and one > 0 for one in relatives),
        "down": sum(one is not None and one < 0 for one in relatives),
        "added, removed or unpriced": relatives.count(None),
    }
    words = ", ".join(f"{number} {name}" for name, number in counts.items() if number)
    parts = [f"{_counted(len(costs), 'cost changes', 'costs change')} ({words})" if costs else ""]
    parts.append(
        _some(len(difference.winners), "cheapest choice changes", "cheapest choices change")
    )
    parts += [
        f"{_counted(len(files), 'result', 'results')} {kind}"
        for kind, files in difference.results.by_kind().items()
    ]
    parts.append(_unsure(difference))
    parts.append(_some(len(difference.problems), "file left out", "files left out"))
    return "; ".join(part for part in parts if part)


def _unsure(difference: Difference) -> str:
    return _some(
        difference.unsure,
        "job measured again without a change that can be said",
        "jobs measured again without a change that can be said",
    )


def _some(number: int, one: str, many: str) -> str:
    return _counted(number, one, many) if number else ""


def _counted(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def cells(change: ChangedCost) -> tuple[str, ...]:
    """A change under ``HEADER``."""
    before, after = change.before, change.after
    either = after or before
    return (
        job_words(change.job),
        machine_words(change.job),
        plan_words(either.price if either else None),
        cost_words(before.basis.cost if before else None),
        cost_words(after.basis.cost if after else None),
        change_words(change),
        _reasons(change),
    )


def _reasons(change: ChangedCost) -> str:
    """The causes; where there are several, each with what it adds."""
    words = []
    for reason in change.reasons:
        part, currency = reason.part, change.currency
        several = len(change.reasons) > 1 and part is not None and currency is not None
        adds = f" ({signed(part.amount, currency)})" if several and part and currency else ""
        words.append(f"{reason.cause}{adds}: {reason.words}")
    return "; ".join(words)


def job_words(job: Job) -> str:
    """What is done, to which end."""
    words = [job.subject, GOALS[job.goal], f"batch {job.batch_size}"]
    words += [f"{job.threads} threads"] if job.threads and not job.variant else []
    return ", ".join(word for word in (*words, job.variant, job.load, job.source) if word)


def machine_words(job: Job) -> str:
    """The machine's id, the host of it that measured, and the device."""
    host = f" (host {job.host[:4]})" if job.host else ""
    return f"{job.hardware}{host}, {job.device}"


def plan_words(price: Price | None) -> str:
    """A plan by its id."""
    return "no price" if price is None else price.id + (" (assumed)" if price.assumed else "")


def cost_words(cost: Cost | None) -> str:
    """An amount; a plan that is not there, and a price that nobody knows, are states."""
    if cost is None:
        return "—"
    return "unknown" if isinstance(cost, Unpriced) else money(cost.mean, cost.currency)


def change_words(change: ChangedCost) -> str:
    """The change in percent, and as an amount."""
    amount, relative = change.amount, change.relative
    if amount is None or not change.currency:
        return "—"
    percent = "" if relative is None else f" ({relative:+.1%})"
    return f"{signed(amount, change.currency)}{percent}"


def signed(amount: Decimal, currency: str) -> str:
    """An amount with its sign."""
    return f"{'+' if amount > 0 else ''}{money(amount, currency)}"


def winner_words(winner: Winner) -> str:
    """A sentence on who was cheapest and who is."""
    what = f"{winner.subject}, {GOALS[winner.goal]}"
    doubt = "" if winner.sure else "; their intervals overlap, so that either may be cheaper"
    was = _choice_words(winner.before, winner.goal)
    return f"{what}: was {was}; is {_choice_words(winner.after, winner.goal)}{doubt}"


def _choice_words(row: Row | None, goal: Goal) -> str:
    if row is None:
        return "unknown"
    estimate: Estimate | None = row.estimate(goal)
    amount = cost_words(estimate)
    batch = f"batch {row.observed.batch_size}"
    return f"{row.observed.machine.hardware}, {batch}, {plan_words(row.price)}, {amount}"
