"""Rows as choices: what each timed workload costs today, how surely, and what is known of accuracy.

Which of them is best is asked of `cost`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from epochcost.cost import Candidate, Unpriced
from epochcost.cost.priced_job import PricedJob
from epochcost.cost.questions import Accuracy
from epochcost.cost.uncertainty import CostInterval, cost_interval
from epochcost.errors import InputError
from epochcost.report.rows import Goal, Row
from epochcost.specs.catalogue import Catalogue


@dataclass(frozen=True, slots=True)
class Offer:
    """A row as a job that can be billed anew, with its cost and all that is uncertain about it."""

    row: Row
    job: PricedJob
    interval: CostInterval


@dataclass(frozen=True, slots=True)
class Offers:
    """What can be compared, cheapest first, and each row that cannot, with the reason."""

    candidates: tuple[Candidate[Offer], ...]
    unpriced: tuple[tuple[Row, str], ...]


def offers(rows: Iterable[Row], goal: Goal) -> Offers:
    """The offers of rows that may answer, in the currency that most of them have.

    A candidate's time is on the wall: with start-ups and what is expected of interruptions.
    """
    candidates: list[Candidate[Offer]] = []
    unpriced: list[tuple[Row, str]] = []
    for row in rows:
        if row.answers and row.time(goal) is not None:
            try:
                candidates.append(_candidate(row, goal))
            except InputError as error:
                unpriced.append((row, str(error)))
    counts = Counter(one.cost.currency for one in candidates)
    usual = max(sorted(counts), key=counts.__getitem__, default=None)
    for one in candidates:
        if one.cost.currency != usual:
            reason = f"its price is in {one.cost.currency}, and others are in {usual}"
            unpriced.append((one.key.row, reason))
    same = [one for one in candidates if one.cost.currency == usual]
    ordered = sorted(same, key=lambda one: (one.cost.mean, one.seconds))
    return Offers(tuple(ordered), tuple(unpriced))


def _candidate(row: Row, goal: Goal) -> Candidate[Offer]:
    """The row as an offer; raises InputError, with the reason, where it has no cost."""
    cost, time = row.cost(goal), row.time(goal)
    if row.price is None or time is None or isinstance(cost, Unpriced):
        raise InputError(cost.reason if isinstance(cost, Unpriced) else "no price is known")
    machine = row.observed.machine
    job = PricedJob(row.price, time, machine.vcpus, machine.device == "cuda", goal != "full")
    interval = cost_interval(job)
    return Candidate(Offer(row, job, interval), job.bill().elapsed_seconds, interval.cost)


def accuracies(catalogue: Catalogue, subject: str) -> Mapping[int, Accuracy]:
    """The accuracy that published rows of a workload give for batch sizes, the best of each."""
    known: dict[int, Accuracy] = {}
    for source in catalogue.published.values():
        if subject not in {source.model, source.id}:
            continue
        for timing in source.timings:
            if timing.batch_size is None or timing.accuracy_percent is None:
                continue
            one = Accuracy(timing.accuracy_percent, timing.accuracy_spread or Decimal(0))
            other = known.setdefault(timing.batch_size, one)
            if one.percent > other.percent:
                known[timing.batch_size] = one
    return known
