"""The words of a comparison that the terminal, the comment and the page share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from decimal import Decimal

from epochcost.analysis.difference.changes import ChangedCost, Difference, Winner
from epochcost.analysis.difference.figures import ChangedFigure
from epochcost.analysis.difference.predictions import PredictionChanges
from epochcost.analysis.odds import scenarios
from epochcost.analysis.priced_jobs import GOAL_WORDS, JobKey, PricedWork, machine_words
from epochcost.cost.estimate import Unpriced
from epochcost.specs.price import Price
from epochcost.units import money, money_range

# Changes are ordered as they are shown: what one price does to many costs stands together.
_DIGITS = 3
_MOST_NAMED = 3
# Of what is predicted anew so many costs are shown, if they change by so much.
_MOST_ANEW, _LEAST_ANEW = 20, 0.05
HEADER = ("job", "machine", "plan", "before", "after", "change", "why")


def shown_costs(difference: Difference) -> tuple[ChangedCost, ...]:
    """The changes less what follows from others beside them under the same plan.

    These are epochs beside their full training, hours beside any work, and what is predicted anew
    and does not change much or most.
    """
    costs = _without_most_predicted(difference.costs)
    full = {(one.job.work, _plan_id(one)) for one in costs if one.job.goal == "full"}
    worked = {_plan_id(one) for one in costs if one.job.goal != "hour"}
    return tuple(
        one
        for one in costs
        if not (one.job.goal == "epoch" and (one.job.work, _plan_id(one)) in full)
        and not (one.job.goal == "hour" and _plan_id(one) in worked)
    )


def _without_most_predicted(costs: tuple[ChangedCost, ...]) -> tuple[ChangedCost, ...]:
    anew = (one for one in costs if one.only_predicted and one.job.goal != "epoch")
    much = [one for one in by_size(tuple(anew)) if _size(one) >= _LEAST_ANEW]
    return (*(one for one in costs if not one.only_predicted), *much[:_MOST_ANEW])


def by_size(costs: tuple[ChangedCost, ...]) -> tuple[ChangedCost, ...]:
    """What came, went or changed most first; equals in their order."""
    return tuple(sorted(costs, key=lambda one: -_size(one)))


def _size(one: ChangedCost) -> float:
    relative = one.relative
    if relative is None and one.only_timed:
        relative = one.time.factor.mean - 1 if one.time else 0.0
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
    parts.append(
        _some(
            len(difference.figures),
            "result other than a cost changes",
            "results other than costs change",
        )
    )
    parts.append(_anew(difference.predictions))
    parts += [f"{counted} {kind}" for counted, kind, _ in _predictions(difference.predictions)]
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
        cost_words(before),
        cost_words(after),
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


def job_words(job: JobKey) -> str:
    """What is done, to which end."""
    words = [job.workload, GOAL_WORDS[job.goal], _batch_words(job)]
    words += [f"{job.threads} threads"] if job.threads and not job.variant else []
    return ", ".join(word for word in (*words, job.variant, job.load, job.source) if word)


def plan_words(price: Price | None) -> str:
    """A plan by its id."""
    return "no price" if price is None else price.id + (" (assumed)" if price.assumed else "")


def cost_words(work: PricedWork | None) -> str:
    """An amount, of what nobody timed its ends; no such plan and no known price are states."""
    if work is None:
        return "—"
    cost = work.basis.cost
    if isinstance(cost, Unpriced):
        return "unknown"
    if work.estimated or work.predicted:
        return money_range(cost.low, cost.high, cost.currency)
    return money(cost.mean, cost.currency)


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
    what = f"{winner.workload}, {GOAL_WORDS[winner.goal]}"
    wins = winner.wins
    chances = "" if wins is None else f"; it costs least in {scenarios(wins)} scenarios"
    was = _choice_words(winner.before)
    return f"{what}: was {was}; is {_choice_words(winner.after)}{chances}"


def figure_words(figure: ChangedFigure) -> str:
    """A figure as it came out and as it does."""
    return f"{figure.kind}, {figure.what}: was {figure.before}; is {figure.after}"


def prediction_words(changes: PredictionChanges) -> tuple[str, ...]:
    """A sentence on each thing that happened to predictions."""
    anew = changes.anew
    words = [f"{counted} {kind}: {_shares(jobs)}" for counted, kind, jobs in _predictions(changes)]
    if anew is not None:
        most = f"{anew.largest:+.1%} ({job_words(anew.job)}, on {machine_words(anew.job)})"
        words.insert(0, f"{_anew(changes)}: median {anew.median:+.1%}, most {most}")
    return tuple(words)


def _anew(changes: PredictionChanges) -> str:
    times = changes.anew.times if changes.anew else 0
    return _some(times, "time predicted anew", "times predicted anew")


def _predictions(changes: PredictionChanges) -> Iterator[tuple[str, str, tuple[JobKey, ...]]]:
    for kind, jobs in changes.by_kind().items():
        yield _counted(len(jobs), "prediction", "predictions"), kind, jobs


def _shares(jobs: tuple[JobKey, ...]) -> str:
    """How many are for each machine or each model, whichever are fewer."""
    machines, models = (
        Counter(names)
        for names in zip(*((one.hardware, one.workload) for one in jobs), strict=True)
    )
    fewer = min(machines, models, key=len)
    words = [f"{number:,} for {name}" for name, number in fewer.most_common(_MOST_NAMED)]
    more = len(fewer) - _MOST_NAMED
    return ", ".join(words) + (f" and others for {more:,} more" if more > 0 else "")


def _choice_words(work: PricedWork | None) -> str:
    if work is None:
        return "unknown"
    job = work.job
    words = (job.hardware, _batch_words(job), plan_words(work.price), cost_words(work), job.source)
    return ", ".join(word for word in words if word)


def _batch_words(job: JobKey) -> str:
    return "" if job.batch_size is None else f"batch {job.batch_size}"
