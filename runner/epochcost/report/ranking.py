"""Rank the machines that can do a job, each at its cheapest price plan, for lists and charts.

`analysis.rows` decides which timed workloads may be ranked. A training without a known time is
ranked by the costs that `analysis.estimates` computes from numbers of operations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import Literal

from epochcost.analysis.estimates import EstimatedRow
from epochcost.analysis.finetune import SOFTWARE, FinetuneAnswer, by_hardware
from epochcost.analysis.machines import Machine
from epochcost.analysis.observations import STACK_NAMES, Evidence, Goal
from epochcost.analysis.odds import Odds
from epochcost.analysis.representatives import UNSTABLE
from epochcost.analysis.rows import Row, by_stack, odds_of, ranking
from epochcost.analysis.token_answers import TokenAnswer
from epochcost.cost import compare
from epochcost.cost.compare import Candidate
from epochcost.cost.estimate import Estimate, Time
from epochcost.cost.owned import energy_per_hour
from epochcost.report.wording import render_ratio
from epochcost.specs.api import MILLION
from epochcost.specs.price import Price
from epochcost.statistics import first_by
from epochcost.units import SECONDS_PER_HOUR, money, money_about

SHORT_SECONDS = 1800
# Nobody pays more for a time that is shorter by less; as in calculator.js.
_AS_FAST = Decimal("1.05")
# Of decoders: a million tokens of the page's requests, and a fine-tuning by LoRA.
ContestGoal = Goal | Literal["tokens", "lora"]
_ESTIMATE = Evidence("how it is estimated", "explanation/predictions.md")
_PREDICTION = Evidence("how it is predicted", "explanation/predictions.md")


@dataclass(frozen=True, slots=True)
class Contender:
    """A machine for a job, at its cheapest price plan; ``mark`` says how its figures are known.

    Estimates have no ``row``, batch size, software or precision. Jobs of decoders have no ``row``.
    """

    hardware: str
    name: str
    price: Price
    time: Time
    cost: Estimate
    mark: str
    evidence: Evidence
    batch_size: int | None = None
    software: str = ""
    precision: str = ""
    doubts: tuple[str, ...] = ()
    row: Row | None = None

    @property
    def plan(self) -> str:
        """The price plan in words, taken from ``row``; without a row, the id of the price."""
        return self.row.plan if self.row else self.price.id

    @property
    def reservation(self) -> str:
        """The reason not to recommend the machine; empty without a reason."""
        return (self.row or self.price).reservation

    @property
    def drawbacks(self) -> tuple[bool, bool]:
        """Whether the price has a drawback (it is assumed, say); whether the time is imprecise."""
        return self.row.drawbacks if self.row else (bool(self.price.reservation), False)

    @property
    def added_energy(self) -> Decimal | None:
        """Cost of the energy that an owned machine uses for the job, beyond its idle energy.

        None for rented machines, and for owned machines whose costs are stated for one vCPU.
        """
        owned = self.price.owned
        if owned is None or owned.per_vcpu:
            return None
        return energy_per_hour(owned) * self.time.mean / SECONDS_PER_HOUR

    @property
    def is_measured(self) -> bool:
        """Whether this project measured the time on the machine."""
        return self.mark.startswith("measured")

    @property
    def time_of_one(self) -> Time:
        """The time of one inference: a millionth of ``time``, which is for a million inferences."""
        return self.time.scaled(Decimal("1e-6"))

    @property
    def answers(self) -> bool:
        """Whether the machine has no drawback, such as an assumed price or an imprecise time."""
        return not self.reservation

    @property
    def remarks(self) -> tuple[str, ...]:
        """Reasons to doubt the figures; a drawback of the price (assumed, say) comes first."""
        unknown = self.price.unconfirmed_text
        price = f"{unknown} of the price not confirmed" if unknown else ""
        return tuple(filter(None, (self.reservation, price, *self.doubts)))

    @property
    def unstable(self) -> bool:
        """Whether a repeated measurement may give another time; ``doubts`` say why."""
        return any(doubt.startswith(UNSTABLE) for doubt in self.doubts)

    @property
    def amount(self) -> str:
        """Format the job's cost for readers; predicted and estimated costs get fewer digits."""
        timed = self.mark.startswith(("measured", "published"))
        return (money if timed else money_about)(self.cost.mean, self.cost.currency)


@dataclass(frozen=True)
class Contest:
    """The machines for a job of a workload: cheapest first, those with a drawback last.

    ``beside`` has such a ranking for the same job in each other software stack.
    """

    goal: ContestGoal
    machines: tuple[Contender, ...]
    beside: tuple[Contest, ...] = ()

    @cached_property
    def competing(self) -> tuple[Contender, ...]:
        """Machines with the least drawbacks; an assumed price is worse than an imprecise time."""
        least = min(contender.drawbacks for contender in self.machines)
        return tuple(each for each in self.machines if each.drawbacks == least)

    @cached_property
    def _competing_in_one_currency(self) -> tuple[Contender, ...]:
        currency = self.competing[0].cost.currency
        return tuple(each for each in self.competing if each.cost.currency == currency)

    @cached_property
    def frontier(self) -> tuple[Contender, ...]:
        """The machines that no other machine beats in both time and cost, fastest first."""
        candidates = (
            Candidate(each, each.time.mean, each.cost) for each in self._competing_in_one_currency
        )
        return tuple(candidate.key for candidate in compare.frontier(candidates))

    @property
    def cheapest(self) -> Contender:
        """The machine with the lowest cost."""
        return min(self.frontier, key=lambda contender: contender.cost.mean)

    @property
    def fastest(self) -> Contender:
        """The cheapest of the machines that take at most 5 % longer than the quickest."""
        longest = self.frontier[0].time.mean * _AS_FAST
        # Costs fall along the frontier, as times rise.
        return [each for each in self.frontier if each.time.mean < longest][-1]

    @property
    def balanced(self) -> Contender:
        """The machine with the least product of cost and time."""
        return min(self.frontier, key=lambda contender: contender.cost.mean * contender.time.mean)

    @property
    def is_short(self) -> bool:
        """Whether the job is so short that a machine's start, which ``time`` omits, matters."""
        return self.goal != "tokens" and self.cheapest.time.mean < SHORT_SECONDS

    @property
    def stack_text(self) -> str:
        """The software that all machines of this ranking run, such as "ONNX Runtime".

        Empty for costs estimated from numbers of operations, and for the jobs "tokens" and "lora".
        """
        row = self.machines[0].row
        return STACK_NAMES[row.observed.stack] if row else ""

    @property
    def confirmed(self) -> Contender | None:
        """The cheapest of ``competing`` at a confirmed price; None if ``cheapest`` has one.

        Amount, date and billing of the price must be confirmed.
        """
        return self._cheapest_other(lambda contender: not contender.price.unconfirmed_text)

    @property
    def measured(self) -> Contender | None:
        """The cheapest measured machine of ``competing``; None if ``cheapest`` is measured."""
        return self._cheapest_other(lambda contender: contender.is_measured)

    def _cheapest_other(self, suits: Callable[[Contender], bool]) -> Contender | None:
        suitable = () if suits(self.cheapest) else filter(suits, self._competing_in_one_currency)
        return min(suitable, key=lambda contender: contender.cost.mean, default=None)

    @property
    def imprecise(self) -> Contender | None:
        """The cheapest machine not recommended because its time is imprecise; None without one."""
        others = (each for each in self.machines if each not in self.competing)
        return next((each for each in others if not each.price.reservation), None)

    @cached_property
    def odds(self) -> Odds[Machine] | None:
        """The odds that ``cheapest`` indeed costs least, although times are uncertain.

        None for costs estimated from numbers of operations, and for the jobs "tokens" and "lora".
        """
        best, goal = self.cheapest.row, self.goal
        if best is None or goal == "tokens" or goal == "lora":  # noqa: PLR1714
            return None
        return odds_of(
            best, (each.row for each in self._competing_in_one_currency if each.row), goal
        )

    @cached_property
    def cost_axis(self) -> LogAxis:
        """The axis that the costs of all machines share."""
        return LogAxis.over(contender.cost for contender in self.machines)

    @cached_property
    def time_axis(self) -> LogAxis:
        """The axis that the times of all machines share."""
        return LogAxis.over(contender.time for contender in self.machines)


@dataclass(frozen=True, slots=True)
class LogAxis:
    """A logarithmic axis that covers the means of some values; its ends are decimal logarithms."""

    low: float
    high: float

    @classmethod
    def over(cls, values: Iterable[Time | Estimate]) -> LogAxis:
        """Make a logarithmic axis that covers the means of ``values``, and a margin at each end."""
        means = [math.log10(value.mean) for value in values if value.mean > 0]
        return cls(min(means, default=0) - 1 / 3, max(means, default=0) + 1 / 3)

    def percent(self, value: Decimal) -> str:
        """The position of a value in percent of the axis; 0 or 100 for values outside of it."""
        number = float(value)
        at = math.log10(number) if number > 0 else self.low
        return f"{100 * min(max((at - self.low) / (self.high - self.low), 0), 1):.1f}"


def contest(rows: Iterable[Row], goal: Goal) -> Contest | None:
    """Rank a workload's machines for each software stack; None if no row can be ranked.

    The first ranking is in the stack with the surest times. Its ``beside`` has the other rankings.
    """
    contests = [
        Contest(goal, tuple(_of_row(row, goal) for row in ranked))
        for stack in by_stack(rows, goal)
        if (ranked := ranking(stack, goal))
    ]
    return replace(contests[0], beside=tuple(contests[1:])) if contests else None


def _of_row(row: Row, goal: Goal) -> Contender:
    observed, time, cost = row.observed, row.time(goal), row.estimate(goal)
    assert row.price is not None, "ranked rows have a price"
    assert time is not None, "ranked rows have a time"
    assert cost is not None, "ranked rows have a cost"
    return Contender(
        hardware=observed.machine.hardware,
        name=observed.machine.name,
        price=row.price,
        time=time,
        cost=cost,
        mark=row.mark,
        evidence=observed.evidence,
        batch_size=observed.batch_size,
        software=observed.software,
        precision=observed.precision,
        doubts=(*observed.doubts, render_ratio(observed)),
        row=row,
    )


def estimated_contest(rows: Iterable[EstimatedRow]) -> Contest | None:
    """Rank machines for a full training, from ``rows`` sorted best first; None without rows."""
    machines = tuple(
        Contender(
            hardware=row.hardware.id,
            name=row.hardware.name,
            price=row.price,
            time=row.time,
            cost=row.cost,
            mark=row.mark,
            evidence=_ESTIMATE,
        )
        for row in first_by(rows, lambda row: row.hardware.id)
    )
    return Contest("full", machines) if machines else None


def tokens_contest(answer: TokenAnswer) -> Contest | None:
    """Rank the machines for a million tokens at full load, each at its cheapest price."""
    requests = MILLION / Decimal(answer.requests.tokens)
    offers = sorted(answer.offers, key=lambda each: (bool(each.price.reservation), each.full.mean))
    machines = tuple(
        Contender(
            hardware=offer.deployment.machine.hardware,
            name=offer.deployment.machine.name,
            price=offer.price,
            time=offer.capacity.request.scaled(requests),
            cost=offer.full,
            mark=offer.mark,
            evidence=_PREDICTION,
            software=offer.deployment.software,
            precision=offer.deployment.precision,
        )
        for offer in first_by(offers, lambda offer: offer.deployment.machine)
    )
    return Contest("tokens", machines) if machines else None


def tuning_contest(answer: FinetuneAnswer) -> Contest:
    """Rank the machines for a fine-tuning, each at the cheapest price plan."""
    machines = tuple(
        Contender(
            hardware=offer.key.way.hardware.id,
            name=offer.key.way.hardware.name,
            price=offer.key.price,
            time=offer.key.way.time,
            cost=offer.cost,
            mark=offer.key.mark,
            evidence=_PREDICTION,
            batch_size=offer.key.way.setting.sequences,
            software=SOFTWARE,
            precision=offer.key.way.precision,
        )
        for offer in by_hardware(answer.offers)
    )
    return Contest("lora", machines)
