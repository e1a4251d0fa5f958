"""Combine each timed workload with each price plan of its machine into a row, and rank rows.

Rows are about training and inference in full batches; `serving` and `tokens` price requests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from operator import itemgetter
from typing import Any, TypeVar

from epochcost.analysis.machines import Machine
from epochcost.analysis.observations import KINDS, Goal, Observation
from epochcost.analysis.odds import Odds, draws_along, odds
from epochcost.cost.compare import Accuracy, Candidate
from epochcost.cost.estimate import Cost, Estimate, Time, Unpriced
from epochcost.cost.money import exact_arithmetic
from epochcost.cost.sensitivity import CostInterval, PricedJob, cost_interval
from epochcost.errors import InputError
from epochcost.predict.process import Vector
from epochcost.specs.api import MILLION
from epochcost.specs.catalogue import Catalogue, current_prices
from epochcost.specs.price import Price
from epochcost.specs.study import Mode
from epochcost.statistics import first_by, group_by
from epochcost.units import CONVERT

T = TypeVar("T")
GOAL_NAMES: Mapping[Goal, str] = {
    "epoch": "one epoch",
    "full": "full training",
    "million": "a million inferences",
}
# The same goals with their articles.
WORK_NAMES: Mapping[Goal, str] = {**GOAL_NAMES, "epoch": "an epoch", "full": "a full training"}


@dataclass(frozen=True, slots=True)
class Row:
    """A timed workload under one price plan; ``costs`` has the cost of each goal, such as an epoch.

    ``current`` is False if the plan has a newer price. ``price`` is None if no price is known.
    """

    observed: Observation
    price: Price | None
    current: bool
    costs: Mapping[Goal, Cost]

    @property
    def mode(self) -> Mode:
        """Whether the row is about training or inference."""
        return self.observed.mode

    @property
    def answers(self) -> bool:
        """Whether the row may be chosen: its price is current and its epochs are known."""
        return self.current and self.observed.epochs_known

    @property
    def reservation(self) -> str:
        """The row's drawback, such as an imprecise time or an assumed price; empty if none."""
        of_price = self.price.reservation if self.price else ""
        return self.observed.imprecise or of_price

    @property
    def drawbacks(self) -> tuple[bool, bool]:
        """Whether the price has a drawback (is assumed, say), and whether the time is imprecise."""
        return bool(self.price and self.price.reservation), bool(self.observed.imprecise)

    @property
    def mark(self) -> str:
        """The text "measured", "published" or "predicted", with a note if the price is assumed."""
        return mark_of(self.observed.kind, self.price)

    @property
    def plan(self) -> str:
        """The price plan in one phrase, with its date."""
        if self.price is None:
            return "no price"
        region = f", {self.price.region}" if self.price.region else ""
        return f"{' '.join(self.price.provider_and_plan)}{region}, {self.price.as_of}"

    def cost(self, goal: Goal) -> Cost | None:
        """The cost of a goal; None if the goal is for the other mode (training or inference)."""
        return self.costs.get(goal)

    def time(self, goal: Goal) -> Time | None:
        """The time of a goal; None if the goal is for the other mode (training or inference)."""
        return self.observed.time(goal)

    def estimate(self, goal: Goal) -> Estimate | None:
        """The estimated cost of a goal; None if the cost is unknown."""
        cost = self.cost(goal)
        return cost if isinstance(cost, Estimate) else None

    def draws(self, goal: Goal) -> Vector:
        """Random draws [DRAWS] of the goal's cost; the row must have an estimate of the cost."""
        cost = self.estimate(goal)
        assert cost is not None, "callers compare known costs only"
        time = self.observed.work(goal).time
        return draws_along(self.observed, time, (cost.low, cost.mean, cost.high))


def mark_of(kind: str, price: Price | None) -> str:
    """The kind of evidence, such as "measured", with a note if the price is assumed."""
    return f"{kind}, price assumed" if price is not None and price.assumed else kind


def price_rows(catalogue: Catalogue, observations: Iterable[Observation]) -> tuple[Row, ...]:
    """Price observations; rows of a workload and mode are sorted by cost, unpriced rows last."""
    # Once for each machine: there may be many thousand observations.
    current = {name: current_prices(catalogue.prices_of(name)) for name in catalogue.hardware}
    today = {price.id for prices in current.values() for price in prices}
    # One context for all bills, because setting one for each is slow.
    with exact_arithmetic():
        rows = [
            Row(
                observed,
                price,
                price is None or price.id in today,
                {goal: observed.work(goal).cost(price) for goal in observed.goals},
            )
            for observed in observations
            for price in _prices_of_observation(catalogue, observed, current)
        ]
    return tuple(sorted(rows, key=_order))


def _prices_of_observation(
    catalogue: Catalogue, observed: Observation, prices_by_machine: Mapping[str, tuple[Price, ...]]
) -> Iterable[Price | None]:
    """The price stated by a time's source and the machine's current prices; (None,) if none."""
    plans = prices_by_machine[observed.machine.hardware]
    paid = catalogue.prices.get(observed.own_price) if observed.own_price else None
    if paid is not None and paid not in plans:
        plans = (paid, *plans)
    return plans or (None,)


def _order(row: Row) -> tuple[object, ...]:
    estimate = row.estimate(row.observed.goals[0])
    cost = estimate.mean if estimate else Decimal("Infinity")
    return row.observed.workload.id, row.mode == "inference", cost, row.plan


def by_stack(rows: Iterable[Row], goal: Goal) -> tuple[tuple[Row, ...], ...]:
    """Group the rows that have a time by software stack, the stack with the surest figures first.

    The stacks' best rows are compared by these criteria, in this order: no drawback (an assumed
    price, say); a known precision; measured before published before predicted; other software
    before ONNX Runtime. A stack is last if none of its rows may be chosen as the cheapest.
    """
    groups = group_by((row for row in rows if row.time(goal)), lambda row: row.observed.stack)
    return tuple(sorted(groups.values(), key=lambda stack: _uncertainty(stack, goal)))


def better_known(rows: Iterable[Row], goal: Goal) -> tuple[Row, ...]:
    """The rows of the first stack of `by_stack`; empty if no row has a time."""
    return next(iter(by_stack(rows, goal)), ())


def _uncertainty(rows: Sequence[Row], goal: Goal) -> tuple[bool, bool, int, bool]:
    best = next(iter(ranking(rows, goal)), None)
    if best is None:
        return True, True, len(KINDS), True
    observed = best.observed
    kind, published = KINDS.index(observed.kind), observed.stack == "published"
    return bool(best.reservation), not observed.precision, kind, not published


def contenders(rows: Iterable[Row], goal: Goal) -> tuple[Row, ...]:
    """The best row of each machine in the stack of `better_known`, the cheapest first.

    Only rows with the least drawback (an assumed price, say) are kept. Empty if no row has a cost.
    """
    ranked = ranking(better_known(rows, goal), goal)
    return tuple(row for row in ranked if row.drawbacks == ranked[0].drawbacks)


def odds_of(choice: Row, rows: Iterable[Row], goal: Goal) -> Odds[Machine]:
    """Odds that the machine of ``choice`` costs least among all machines in ``rows``.

    Each other machine is represented by its cheapest row. Rows without a cost do not count.
    """
    priced = [(cost.mean, row) for row in rows if (cost := row.estimate(goal))]
    ordered = (row for _, row in sorted(priced, key=lambda pair: pair[0]))
    best = first_by((choice, *ordered), lambda row: row.observed.machine)
    return odds(choice.observed.machine, {row.observed.machine: row.draws(goal) for row in best})


def ranking(rows: Iterable[Row], goal: Goal) -> tuple[Row, ...]:
    """Choose the best row of each machine, and sort these rows from best to worst.

    Rows without a drawback come first, then rows with only an imprecise time, then rows whose price
    has a drawback (it is assumed, say). Equal drawbacks are sorted by cost. All rows must belong to
    one software stack. Only rows in the most frequent currency are ranked.
    """
    candidates = [
        Candidate(row, time.mean, estimate)
        for row in rows
        if row.answers and (time := row.time(goal)) and (estimate := row.estimate(goal))
    ]
    usual = usual_currency(candidate.cost.currency for candidate in candidates)
    comparable = [candidate for candidate in candidates if candidate.cost.currency == usual]
    comparable.sort(key=lambda candidate: (candidate.key.drawbacks, _cheapest_first(candidate)))
    return first_by((candidate.key for candidate in comparable), lambda row: row.observed.machine)


def usual_currency(currencies: Iterable[str]) -> str | None:
    """The most frequent currency; None without currencies."""
    counts = Counter(currencies)
    return max(sorted(counts), key=counts.__getitem__, default=None)


def cheapest_price(costs: Sequence[tuple[Price, Decimal]]) -> Price | None:
    """The cheapest price, if any is still offered and plausible, in the most frequent currency."""
    sound = [(cost, price) for price, cost in costs if not price.flaw]
    usual = usual_currency(price.currency for _, price in sound)
    same = (pair for pair in sound if pair[1].currency == usual)
    return min(same, key=itemgetter(0), default=(None, None))[1]


def other_currency(currency: str, usual: str | None) -> str:
    """Explain why a price is not compared with prices in the usual currency."""
    return f"its price is in {currency}, others are in {usual}: {CONVERT}"


def in_currency(
    usual: str | None, ways: Sequence[T], currency: Callable[[T], str], name: Callable[[T], str]
) -> tuple[tuple[T, ...], list[tuple[str, str]]]:
    """Keep the items of ``ways`` in the currency ``usual``; list the others with reasons."""
    others = {(name(way), currency(way)) for way in ways if currency(way) != usual}
    return tuple(way for way in ways if currency(way) == usual), [
        (named, other_currency(code, usual)) for named, code in sorted(others)
    ]


@dataclass(frozen=True, slots=True)
class Offer:
    """A job, the ``row`` with its machine and price, and the range of its cost (``interval``).

    ``job`` repeats the work of ``row``, such as a full training, any number of times.
    """

    row: Row
    job: PricedJob
    interval: CostInterval


@dataclass(frozen=True, slots=True)
class Offers:
    """Offers in one currency, cheapest first; ``unpriced`` has the rows left out, with reasons."""

    candidates: tuple[Candidate[Offer], ...]
    unpriced: tuple[tuple[Row, str], ...]


def offers(rows: Iterable[Row], goal: Goal, repetitions: Decimal) -> Offers:
    """Make offers from rows of a software stack; a job is ``goal`` done ``repetitions`` times.

    Rows at superseded prices, with unknown epochs or in an unusual currency are left out. Of the
    others, only rows with the least drawback make offers: no assumed price beside a confirmed one,
    say. The time of a full training includes machine starts and expected interruptions.
    """
    candidates: list[Candidate[Offer]] = []
    unpriced: list[tuple[Row, str]] = []
    for row in rows:
        if row.answers and row.time(goal) is not None:
            try:
                candidates.append(_make_offer(row, goal, repetitions))
            except InputError as error:
                unpriced.append((row, str(error)))
    usual = usual_currency(candidate.cost.currency for candidate in candidates)
    for candidate in candidates:
        if candidate.cost.currency != usual:
            unpriced.append((candidate.key.row, other_currency(candidate.cost.currency, usual)))
    same = [candidate for candidate in candidates if candidate.cost.currency == usual]
    least = min((candidate.key.row.drawbacks for candidate in same), default=None)
    unpriced += [
        (candidate.key.row, f"{candidate.key.row.reservation}: {candidate.figures}")
        for candidate in same
        if candidate.key.row.drawbacks != least
    ]
    chosen = (candidate for candidate in same if candidate.key.row.drawbacks == least)
    return Offers(tuple(sorted(chosen, key=_cheapest_first)), tuple(unpriced))


def _cheapest_first(candidate: Candidate[Any]) -> tuple[Decimal, Decimal]:
    return candidate.cost.mean, candidate.seconds


def _make_offer(row: Row, goal: Goal, repetitions: Decimal) -> Candidate[Offer]:
    """Make a candidate for ``repetitions`` of ``goal``; raises InputError if there is no cost."""
    cost = row.cost(goal)
    if row.price is None or isinstance(cost, Unpriced):
        raise InputError(cost.reason if isinstance(cost, Unpriced) else "no price is known")
    work = row.observed.work(goal)
    if goal == "million":
        # A batch takes a whole step, even if it is not full.
        repetitions = max(repetitions, Decimal(row.observed.batch_size) / MILLION)
    job = PricedJob(row.price, replace(work, time=work.time.scaled(repetitions)))
    interval = cost_interval(job)
    return Candidate(Offer(row, job, interval), job.bill().elapsed_seconds, interval.cost)


def accuracies(catalogue: Catalogue, workload: str) -> Mapping[int, Accuracy]:
    """The best published accuracy of a workload at each batch size."""
    stated = [
        (timing.batch_size, Accuracy(timing.accuracy_percent, timing.accuracy_spread or Decimal(0)))
        for source in catalogue.published.values()
        if workload in {source.model, source.id}
        for timing in source.timings
        if timing.batch_size is not None and timing.accuracy_percent is not None
    ]
    highest_first = sorted(stated, key=lambda pair: -pair[1].percent)
    return dict(first_by(highest_first, itemgetter(0)))
