"""What two revisions of a project make different: costs with their causes, and who is cheapest.

Only what differs is read and priced: results, specs and models of equal content are compared by
git's ids. Both sides are computed by this version of epochcost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

from epochcost.analysis.difference.figures import ChangedFigure, Pair, changed_figures
from epochcost.analysis.difference.pairs import changed_keys
from epochcost.analysis.difference.predictions import PredictionChanges, prediction_changes
from epochcost.analysis.difference.results import ResultChanges, result_changes
from epochcost.analysis.difference.revision import Snapshot
from epochcost.analysis.difference.sides import Side, both_sides
from epochcost.analysis.gc_pause import gc_paused
from epochcost.analysis.observations import Goal, in_floats
from epochcost.analysis.priced_jobs import JobKey, PricedWork, work_of
from epochcost.analysis.rows import answer
from epochcost.cost import Cost, Unpriced
from epochcost.cost.difference import (
    Cause,
    Contribution,
    amount_of_change,
    contributions,
    cost_changed,
    relative_change,
)
from epochcost.results.rounds import round_count
from epochcost.specs.catalogue import Catalogue, supersedes
from epochcost.specs.price import Price
from epochcost.statistics.interval import TimeChange, time_change

_BY_CHANCE = "measured again; what differs cannot be told from chance"
# Keys of [training] that change a bill and not the work of a step.
_LENGTH_OF_TRAINING = ("examples_per_epoch", "epochs")


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a cost changed; ``part`` is what this adds to it, None where that cannot be told."""

    cause: Cause
    words: str
    part: Contribution | None = None


@dataclass(frozen=True, slots=True)
class ChangedCost:
    """A job's cost under one plan before and after; None: the plan was not there.

    ``time`` compares what was measured, None where nothing was measured again.
    """

    before: PricedWork | None
    after: PricedWork | None
    reasons: tuple[Reason, ...]
    time: TimeChange | None = None

    @property
    def job(self) -> JobKey:
        """What is priced."""
        either = self.after or self.before
        assert either is not None, "a change has a side"
        return either.job

    @property
    def amount(self) -> Decimal | None:
        """After less before; None where either is no amount, or currencies differ."""
        return amount_of_change(*self._costs)

    @property
    def relative(self) -> float | None:
        """The change over what it was."""
        return relative_change(*self._costs)

    @property
    def only_predicted(self) -> bool:
        """Whether nothing but what predictions learn from changed it."""
        return [one.cause for one in self.reasons] == ["prediction"]

    @property
    def only_timed(self) -> bool:
        """Whether no price is known on either side, so that only a time can be another."""
        return all(isinstance(cost, Unpriced) for cost in self._costs)

    @property
    def currency(self) -> str | None:
        """That of the amount of change; None where there is none."""
        return self.after.price.currency if self.after and self.after.price else None

    @property
    def _costs(self) -> tuple[Cost | None, ...]:
        return tuple(one.basis.cost if one else None for one in (self.before, self.after))


@dataclass(frozen=True, slots=True)
class Winner:
    """The cheapest way to a goal before and after; None: nothing had a cost.

    ``wins``: the probability that it is the cheapest now; None of estimates, which have no draws.
    """

    workload: str
    goal: Goal
    before: PricedWork | None
    after: PricedWork | None
    wins: float | None


@dataclass(frozen=True, slots=True)
class Difference:
    """All that changes; empty in every part where nothing does.

    ``unsure`` counts costs whose time was measured again without a change that can be said.
    """

    before: str
    after: str
    costs: tuple[ChangedCost, ...]
    winners: tuple[Winner, ...]
    results: ResultChanges
    unsure: int
    problems: tuple[str, ...]
    figures: tuple[ChangedFigure, ...] = ()
    predictions: PredictionChanges = field(default_factory=PredictionChanges)

    @property
    def is_empty(self) -> bool:
        """Whether a reader need not be told anything."""
        known = self.costs or self.winners or self.results or self.figures or self.predictions
        return not (known or self.unsure or self.problems)


def difference(before: Snapshot, after: Snapshot) -> Difference:
    """Compare two snapshots: costs of the same job on the same host, and what is cheapest."""
    if before.blobs == after.blobs:
        return Difference(before.label, after.label, (), (), ResultChanges(), 0, ())
    if before.declared == after.declared:
        before = replace(before, load=lambda: after.catalogue)
    with gc_paused():
        one, other = both_sides(before, after)
        figures = tuple(changed_figures(Pair(before, after, one, other)))
    compared = [
        _compared(pair, one.catalogue, other.catalogue) for pair in _pairs(one.work, other.work)
    ]
    costs = [change for change in compared if change is not None and change.reasons]
    return Difference(
        before=before.label,
        after=after.label,
        costs=tuple(sorted(costs, key=_order)),
        winners=tuple(_winners(one, other)),
        results=result_changes(before, after, one, other),
        unsure=len({change.job.work for change in compared if change and not change.reasons}),
        problems=tuple(dict.fromkeys((*one.problems, *other.problems))),
        figures=figures,
        predictions=prediction_changes(one, other),
    )


_Pair = tuple[PricedWork | None, PricedWork | None]


def _pairs(before: Sequence[PricedWork], after: Sequence[PricedWork]) -> Iterator[_Pair]:
    """The same job on both sides, plan by plan; jobs of one side only are no change of a cost."""
    earlier: dict[JobKey, list[PricedWork]] = {}
    for one in before:
        earlier.setdefault(one.job, []).append(one)
    later: dict[JobKey, list[PricedWork]] = {}
    for one in after:
        if one.job in earlier:
            later.setdefault(one.job, []).append(one)
    for job, plans in later.items():
        yield from _plans(earlier[job], plans)


def _plans(before: Sequence[PricedWork], after: Sequence[PricedWork]) -> Iterator[_Pair]:
    """The same plan on both sides: of the same id, or the newer price of one."""
    left = [one for one in before if one.current]
    unpriced = next((one for one in left if one.price is None), None)
    for other in after:
        if not other.current:
            continue
        match = _same_plan(left, other.price) or unpriced
        yield match, other
        if match is not None and match in left:
            left.remove(match)
    gone = [(one, None) for one in left if one is not unpriced]
    yield from gone
    paid = {one.price.id: one for one in before if one.price and not one.current}
    for other in after:
        if other.price and not other.current and other.price.id in paid:
            yield paid[other.price.id], other


def _same_plan(candidates: Iterable[PricedWork], price: Price | None) -> PricedWork | None:
    listed = [one for one in candidates if one.price is not None]
    if price is None:
        return listed[0] if listed else None
    by_id = (one for one in listed if one.price and one.price.id == price.id)
    earlier = (one for one in listed if one.price and supersedes(price, one.price))
    return next(by_id, None) or next(earlier, None)


def _compared(pair: _Pair, earlier: Catalogue, later: Catalogue) -> ChangedCost | None:
    """The change of a pair; without reasons where only a time differs and that cannot be said."""
    before, after = pair
    costs = (one.basis.cost if one else None for one in pair)
    same = not cost_changed(*costs) and not _asks_otherwise(before, after)
    if same and not _takes_otherwise(before, after):
        return None
    if before is None or after is None:
        return ChangedCost(before, after, (_plan_came_or_went(before, after),))
    time = _time_change(before, after)
    timed, words = _timed(before, after, time)
    found = {part.cause: part for part in contributions(before.basis, after.basis, timed)}
    said = {
        timed: words,
        "spec": _spec_words(before, after, earlier, later),
        "price": _price_words(before.price, after.price),
    }
    if any(said.values()) and timed in found and not said[timed]:
        said[timed] = _BY_CHANCE
    if not any(said.values()) and not _measured_again(before, after):
        said["spec"] = "other keys of the specs"
    reasons = tuple(Reason(cause, text, found.get(cause)) for cause, text in said.items() if text)
    return ChangedCost(before, after, reasons, time)


def _asks_otherwise(before: PricedWork | None, after: PricedWork | None) -> bool:
    """Whether a plan says something else, though an hour under it costs the same."""
    if before is None or after is None or after.job.goal != "hour":
        return False
    one, other = before.price, after.price
    return one is not None and other is not None and changed_keys(one, other) != ""


def _takes_otherwise(before: PricedWork | None, after: PricedWork | None) -> bool:
    """Whether a job or its step takes another time, though the cost is the same or unknown."""
    if before is None or after is None:
        return False
    one, other = before.basis, after.basis
    return (one.work.time, one.step) != (other.work.time, other.step)


def _plan_came_or_went(before: PricedWork | None, after: PricedWork | None) -> Reason:
    price = after.price if after else before.price if before else None
    assert price is not None, "what comes or goes is a price"
    return Reason("price", f"{price.id} {'added' if after else 'removed'}")


def _measured_again(before: PricedWork, after: PricedWork) -> bool:
    one, other = before.stored, after.stored
    return one is not None and other is not None and one.result != other.result


def _time_change(before: PricedWork, after: PricedWork) -> TimeChange | None:
    if not _measured_again(before, after):
        return None
    if before.basis.step is None or after.basis.step is None:
        return None
    one, other = in_floats(before.basis.step), in_floats(after.basis.step)
    sides = (before.stored, after.stored)
    rounds = min(round_count(side.result.measurement) for side in sides if side)
    return time_change(one, other, rounds=rounds)


def _timed(before: PricedWork, after: PricedWork, time: TimeChange | None) -> tuple[Cause, str]:
    """The cause of another time and its words; no words where the change cannot be said."""
    if after.predicted:
        return "prediction", "" if before.basis.step == after.basis.step else "predicted anew"
    one, other = before.stored, after.stored
    if one is None or other is None:
        return "spec", ""
    method = changed_keys(one.result.trial, other.result.trial)
    cause: Cause = "method" if method else "time"
    if time is None or not time.significant:
        return cause, ""
    low, mean, high = (
        f"{end - 1:+.1%}" for end in (time.factor.low, time.factor.mean, time.factor.high)
    )
    words = f"step {mean} (95 % interval {low} to {high})"
    return cause, f"{words}: {method}" if method else words


def _spec_words(before: PricedWork, after: PricedWork, earlier: Catalogue, later: Catalogue) -> str:
    """What of the model or the machine changes the bill; a published figure has but its table."""
    job, one, other = after.job, before.basis, after.basis
    if after.estimated or after.predicted:
        machines = earlier.hardware[job.hardware], later.hardware[job.hardware]
        models = earlier.models[job.workload], later.models[job.workload]
        return ", ".join(word for pair in (models, machines) if (word := changed_keys(*pair)))
    if job.source:
        same = (one.work.time, one.step) == (other.work.time, other.step)
        return "" if same else "the published table was edited"
    words = []
    if job.workload in earlier.models and job.workload in later.models:
        old, new = earlier.models[job.workload].training, later.models[job.workload].training
        if job.mode == "training" and old and new and old != new:
            words = [changed_keys(old, new, within=(key,)) for key in _LENGTH_OF_TRAINING]
    if one.work.machine != other.work.machine:
        machines = earlier.hardware[job.hardware], later.hardware[job.hardware]
        words.append(changed_keys(*machines))
    return ", ".join(word for word in words if word)


def _price_words(before: Price | None, after: Price | None) -> str:
    if before is None or after is None:
        either = after or before
        came = "added" if after else "removed"
        return f"{either.id} {came}" if either else ""
    if before.id == after.id:
        return changed_keys(before, after)
    if before.amount == after.amount and (words := changed_keys(before, after)):
        return f"{words}, {before.as_of} → {after.as_of}"
    rates = f"{before.amount} → {after.amount} an hour, " if before.amount and after.amount else ""
    return f"{rates}{before.as_of} → {after.as_of}"


def _winners(one: Side, other: Side) -> Iterator[Winner]:
    """The goals whose cheapest way is another than before, or is one at last."""
    goals: tuple[Goal, ...] = ("full", "million")
    workloads = {name for side in (one, other) for name in (*side.rows, *side.estimated)}
    for workload in sorted(workloads):
        for goal in goals:
            first, _ = _cheapest(one, workload, goal)
            second, wins = _cheapest(other, workload, goal)
            if _is_another(first, second):
                yield Winner(workload, goal, first, second, wins)


def _cheapest(side: Side, workload: str, goal: Goal) -> tuple[PricedWork | None, float | None]:
    """The cheapest way and the odds that it is that; estimated where nothing was timed."""
    found = answer(side.rows.get(workload, ()), goal)
    if found and found.cheapest and found.odds:
        return work_of(found.cheapest.row, goal), found.odds.wins
    ordered = side.estimated.get(workload, ()) if goal == "full" else ()
    return (ordered[0] if ordered else None), None


def _is_another(before: PricedWork | None, after: PricedWork | None) -> bool:
    if before is None or after is None:
        return before is not after
    if _place(before)[:-1] != _place(after)[:-1]:
        return True
    old, new = before.price, after.price
    same = old == new or (old and new and (old.id == new.id or supersedes(new, old)))
    return not same


def _place(work: PricedWork) -> tuple[object, ...]:
    """Where and how the work was done, and at whose price."""
    job, price = work.job, work.price.id if work.price else None
    return job.hardware, job.host, job.device, job.batch_size, price


def _order(change: ChangedCost) -> tuple[object, ...]:
    """By workload, goal and machine: the changes that a reader looks for stand together."""
    job = change.job
    either = change.after or change.before
    price = either.price.id if either and either.price else ""
    return (
        job.workload,
        job.goal,
        job.hardware,
        job.host or "",
        job.batch_size or 0,
        str(job),
        price,
    )
