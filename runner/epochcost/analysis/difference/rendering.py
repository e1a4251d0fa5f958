"""Describe changes between revisions for terminals, comments on pull requests, and pages."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from operator import attrgetter

from epochcost.analysis.difference.causes import ChangedCost
from epochcost.analysis.difference.changes import Difference, Winner
from epochcost.analysis.difference.results import ResultFile
from epochcost.analysis.difference.table_diff import Figure, Job
from epochcost.analysis.odds import scenarios
from epochcost.analysis.rows import GOAL_NAMES
from epochcost.units import money, money_about, money_range, share

# Changes are sorted by their rounded size, so that effects of one price stay together.
_DIGITS = 3
_MOST_NAMED = 3
# Kinds of costs of which three digits are shown, as a range says that no more are known.
_ROUNDED_KINDS = frozenset({"predicted", "estimated"})
# At most this number of changed predictions is listed, of at least this relative change.
_MOST_ANEW, _LEAST_ANEW = 20, 0.05
HEADER = ("job", "machine", "plan", "before", "after", "change", "why")


def shown_costs(costs: Sequence[ChangedCost]) -> tuple[ChangedCost, ...]:
    """Select the changed costs to list, the largest change first.

    An epoch is left out beside its full training. Only the largest changed predictions are listed.
    """
    full = {_key_without_goal(cost) for cost in costs if cost.figure.job.goal == "full"}
    longest = [
        cost
        for cost in costs
        if cost.figure.job.goal != "epoch" or _key_without_goal(cost) not in full
    ]
    predicted = sorted((cost for cost in longest if cost.only_predicted), key=_largest_first)
    large = [cost for cost in predicted[:_MOST_ANEW] if -_largest_first(cost) >= _LEAST_ANEW]
    explained = [cost for cost in longest if not cost.only_predicted]
    return tuple(sorted((*explained, *large), key=_largest_first))


def _key_without_goal(cost: ChangedCost) -> tuple[object, ...]:
    prices = (side.price if side else None for side in (cost.before, cost.after))
    return (*cost.figure.job.work, *prices)


def _largest_first(cost: ChangedCost) -> float:
    relative = cost.relative
    if relative is None and cost.is_unpriced:
        relative = cost.time.factor.mean - 1 if cost.time else 0.0
    return -float("inf") if relative is None else -round(abs(relative), _DIGITS)


def _render_changed_prediction(difference: Difference) -> Iterator[str]:
    changes = {
        cost.figure.job: cost.relative
        for cost in difference.costs
        if cost.only_predicted and cost.figure.job.goal != "epoch" and cost.relative is not None
    }
    if changes:
        job = max(changes, key=lambda key: abs(changes[key]))
        most = f"{share(changes[job], '+', 1)} ({render_job(job)}, on {render_machine(job)})"
        counted = _number_with_noun(
            len(changes), "predicted cost changes", "predicted costs change"
        )
        learned = difference.results.learned_from
        why = f"; predictions learn from all results ({learned})" if learned else ""
        median = share(statistics.median(changes.values()), "+", 1)
        yield f"{counted}: median {median}, most {most}{why}"


def render_prediction(difference: Difference) -> tuple[str, ...]:
    """Sentences about predictions that changed, were added or were removed."""
    lists = {"added": difference.added, "removed": difference.removed}
    sentences = (
        f"{_number_with_noun(len(jobs), 'prediction')} {kind}: {_commonest_names(jobs)}"
        for kind, jobs in lists.items()
        if jobs
    )
    return (*_render_changed_prediction(difference), *sentences)


def _commonest_names(jobs: Sequence[Job]) -> str:
    """Name at most three machines or models with the most jobs, each with its number of jobs.

    A job counts only for the first of its machine and its model to be named.
    """
    left, shares = list(jobs), list[str]()
    while left and len(shares) < _MOST_NAMED:
        counts = Counter(name for job in left for name in (job.hardware, job.workload))
        name, number = counts.most_common(1)[0]
        left = [job for job in left if name not in (job.hardware, job.workload)]
        shares.append(f"{number:,} for {name}")
    return ", ".join(shares) + (f" and {len(left):,} others" if left else "")


def summary(difference: Difference) -> str:
    """Count the costs that rise, fall or appear, and other changes; predictions count apart."""
    costs = [cost for cost in shown_costs(difference.costs) if not cost.only_predicted]
    relatives = [cost.relative for cost in costs]
    abroad = sum(cost.changes_currency for cost in costs)
    counts = {
        "up": sum(relative is not None and relative > 0 for relative in relatives),
        "down": sum(relative is not None and relative < 0 for relative in relatives),
        "in another currency": abroad,
        "added, removed or unpriced": relatives.count(None) - abroad,
    }
    ways = ", ".join(f"{number} {name}" for name, number in counts.items() if number)
    changes = "cost changes", "costs change"
    new = sum(winner.before is None for winner in difference.winners)
    parts = [
        *(
            f"{_number_with_noun(len(files), 'result')} {kind.replace('_', ' ')}"
            for kind, files in difference.results.by_kind().items()
        ),
        _number_with_noun(len(difference.prices), "other spec changes", "other specs change"),
        f"{_number_with_noun(len(costs), *changes)} ({ways})" if costs else "",
        _number_with_noun(
            len(difference.winners) - new, "cheapest choice changes", "cheapest choices change"
        ),
        _number_with_noun(new, "new job"),
        *(sentence.partition(":")[0] for sentence in render_prediction(difference)),
        _number_with_noun(
            difference.unsure,
            "job re-measured without a significant change",
            "jobs re-measured without a significant change",
        ),
        _number_with_noun(len(difference.problems), "file left out", "files left out"),
    ]
    return "; ".join(part for part in parts if part)


def _number_with_noun(number: int, singular: str, plural: str = "") -> str:
    noun = singular if number == 1 else plural or f"{singular}s"
    return f"{number:,} {noun}" if number else ""


def cells(change: ChangedCost) -> tuple[str, ...]:
    """The cells of a changed cost for a table with the columns ``HEADER``."""
    sides = [side for side in (change.after, change.before) if side is not None]
    # If the price was removed, only the earlier figure names it.
    priced = next((side for side in sides if side.price), change.figure)
    return (
        render_job(change.figure.job),
        render_machine(change.figure.job),
        _render_plan(priced),
        _render_cost(change.before),
        _render_cost(change.after),
        _render_change(change),
        "; ".join(f"{cause.kind}: {cause.text}" for cause in change.causes),
    )


def render_job(job: Job) -> str:
    """Name the workload, goal and variant of a job."""
    threads = f"{job.threads} threads" if job.threads and not job.variant else ""
    goal = "a million tokens" if job.goal == "tokens" else GOAL_NAMES[job.goal]
    parts = (
        job.workload, goal, _render_batch(job), threads, job.variant, job.scenario,
        job.source,
    )  # fmt: skip
    return ", ".join(part for part in parts if part)


def render_machine(job: Job) -> str:
    """Name a job's machine by id, host and device."""
    host = f" (host {job.host[:4]})" if job.host else ""
    return f"{job.hardware}{host}, {job.device}"


def _render_batch(job: Job) -> str:
    return "" if job.batch_size is None else f"batch {job.batch_size}"


def _render_plan(figure: Figure) -> str:
    return f"{figure.price or 'no price'}{' (assumed)' * figure.assumed}"


def _render_cost(figure: Figure | None) -> str:
    if figure is None:
        return "—"
    if figure.cost is None or figure.ends is None:
        return "unknown"
    mean = _render_amount(figure.cost, figure)
    if figure.job.kind in _ROUNDED_KINDS:
        ends = money_range(*figure.ends, figure.currency)
        return mean if ends == mean else f"{mean} ({ends})"
    return mean


def _render_amount(amount: Decimal, figure: Figure) -> str:
    words = money_about if figure.job.kind in _ROUNDED_KINDS else money
    return words(amount, figure.currency)


def _render_change(change: ChangedCost) -> str:
    if change.amount is None:
        return "—"
    percent = "" if change.relative is None else f" ({share(change.relative, '+', 1)})"
    sign = "+" if change.amount > 0 else ""
    return f"{sign}{_render_amount(change.amount, change.figure)}{percent}"


def render_winner(winner: Winner) -> str:
    """A sentence that compares the former cheapest choice for a goal with the new choice."""
    work = f"{winner.workload}, {GOAL_NAMES[winner.goal]}"
    wins, after = winner.wins, winner.after
    firm = winner.before and after and winner.before.assumed and not after.assumed
    odds = "" if wins is None else f"; it costs least in {scenarios(wins)} scenarios"
    if wins is None and after and after.job.kind != "estimated":
        odds = "; no other machine has a time and a price to compare it with"
    was, now = _render_choice(winner.before), _render_choice(winner.after)
    if winner.after is None and winner.removed:
        return f"{work}: was {was}; the model was removed"
    if winner.after is None:
        now += ": no time is known, or its prediction is too uncertain"
    if winner.before is None:
        return f"{work}: {now}{odds}{_render_measured(winner)}"
    if firm:
        known = "" if wins is None else odds
        return f"{work}: {now} is the first choice without an assumed price{known}; was {was}"
    return f"{work}: was {was}; is {now}{odds}"


def _render_measured(winner: Winner) -> str:
    if winner.measured is None:
        return ""
    figure, share = winner.measured
    return f"; measured: {_render_choice(figure)}; it costs least in {scenarios(share)}"


def _render_choice(figure: Figure | None) -> str:
    if figure is None:
        return "unknown"
    job, cost = figure.job, _render_cost(figure)
    plan = _render_plan(figure).removeprefix(f"{job.hardware}-")  # most ids of prices begin with it
    return ", ".join(filter(None, (job.hardware, _render_batch(job), plan, cost, job.source)))


def render_result(file: ResultFile) -> str:
    """Describe a result file, with its cost and the reasons to doubt it."""
    if file.replaced:
        return f"{file.title} on {file.hardware}: not used, because another result replaces it"
    doubts = f" ({'; '.join(file.doubts)})" if file.doubts else ""
    cost = f": {file.cost}" if file.cost else ""
    return f"{file.title} on {file.hardware}{cost}{doubts}"


def sections(difference: Difference) -> Mapping[str, Sequence[str]]:
    """Sentences on a difference, in a list for each section of a page or comment."""
    results = {
        f"results_{kind}": [
            render_result(file) for file in sorted(files, key=attrgetter("replaced"))
        ]
        for kind, files in difference.results.by_kind().items()
    }
    first = [winner for winner in difference.winners if winner.before is None]
    changed = [winner for winner in difference.winners if winner.before is not None]
    return {
        "winners": [render_winner(winner) for winner in first],
        "winners_changed": [render_winner(winner) for winner in changed],
        "predictions": render_prediction(difference),
        "figures": difference.prices,
        **results,
        "left_out": difference.problems,
    }
