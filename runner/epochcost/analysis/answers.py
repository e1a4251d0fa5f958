"""The answers that commands and pages give: times, rows, the cheapest way to a job, tokens.

Only what a question is about is observed, counted and predicted. The callers
render the answers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Literal

from epochcost.analysis.inputs import Inputs
from epochcost.analysis.machines import Machine
from epochcost.analysis.observations import Goal, Observation, Stack, observe
from epochcost.analysis.odds import Odds, Quantity, draws_along
from epochcost.analysis.predicted import NoTime, predict_times
from epochcost.analysis.rows import (
    Offer,
    Offers,
    Row,
    accuracies,
    by_stack,
    odds_of,
    offers,
    price_rows,
)
from epochcost.cost import Candidate
from epochcost.cost.compare import (
    BatchChoice,
    Decision,
    cheapest_batch,
    cheapest_within,
    fastest_within,
)
from epochcost.cost.sensitivity import SPEED, Switch, switching_value
from epochcost.errors import InputError
from epochcost.predict.design import Precision
from epochcost.specs.model import Model
from epochcost.specs.price import MILLION
from epochcost.units import money, plain, seconds

Mode = Literal["training", "inference", "epoch"]
_MODES: Mapping[Mode, tuple[Goal, str]] = MappingProxyType(
    {
        "training": ("full", "full training"),
        "inference": ("million", "million inferences"),
        "epoch": ("epoch", "epoch"),
    }
)


@dataclass(frozen=True, slots=True)
class Times:
    """Measured and published times, predicted ones of work without any, and who has none."""

    observations: tuple[Observation, ...]
    without: tuple[NoTime, ...]


def times_of(
    inputs: Inputs, workloads: Collection[str], precision: Precision | None = None
) -> Times:
    """The times of some workloads, by id, in one precision or whatever is usual.

    Raises as ``predict_times`` does.
    """
    timed = [
        work for work in observe(inputs, workloads=workloads) if precision in (None, work.precision)
    ]
    models = inputs.catalogue.models
    demanded = [models[name] for name in workloads if name in models]
    predicted = predict_times(inputs, demanded, precision)
    machines = {observed.machine.hardware for observed in timed}
    return Times(
        (*timed, *predicted.missing_from(timed)),
        tuple(no_time for no_time in predicted.without if no_time.id not in machines),
    )


def rows_of(inputs: Inputs, workloads: Collection[str]) -> tuple[Row, ...]:
    """The times of some workloads under today's prices; raises as ``times_of`` does."""
    return price_rows(inputs.catalogue, times_of(inputs, workloads).observations)


@dataclass(frozen=True, slots=True)
class Demand:
    """A model, which work of it, by when and for how much at most, in which software.

    ``examples`` are those of an inference, each of so many ``tokens``; None: as the model's spec.
    """

    model: str
    mode: Mode
    deadline_seconds: Decimal | None = None
    budget: Decimal | None = None
    currency: str = "USD"
    software: Stack | None = None
    precision: Precision | None = None
    examples: Decimal = Decimal(MILLION)
    tokens: int | None = None

    @property
    def fastest(self) -> bool:
        """Whether the fastest is demanded: with a budget and no deadline."""
        return self.budget is not None and self.deadline_seconds is None

    @property
    def quantity(self) -> Quantity:
        """The quantity by which candidates compete."""
        return "time" if self.fastest else "cost"

    @property
    def limits(self) -> Mapping[str, str]:
        """Each limit as a phrase, by its name."""
        limits = {}
        if self.deadline_seconds is not None:
            limits["deadline"] = f"within {seconds(float(self.deadline_seconds))}"
        if self.budget is not None:
            limits["budget"] = f"for at most {money(self.budget, self.currency)}"
        return limits

    @property
    def phrase(self) -> str:
        """The demand as a phrase."""
        work = f"a {_MODES[self.mode][1]} of {self.model}"
        if self.mode == "inference" and (self.examples != MILLION or self.tokens):
            work = f"{plain(self.examples / MILLION)} million inferences of {self.model}"
            work += f", {self.tokens} tokens each" if self.tokens else ""
        return " ".join([work, *self.limits.values()])

    def millions(self, model: Model | None) -> Decimal:
        """Millions of the model's examples that take as long as the demanded ones.

        A text of twice the tokens counts as two: attention, which grows faster, is a small part of
        an encoder. Raises InputError for a length of examples that have none.
        """
        if self.tokens is None:
            return self.examples / MILLION
        if model is None or model.tokens_per_example is None:
            raise InputError(
                f"--tokens {self.tokens}: expected a model whose examples are texts, with "
                f"tokens_per_example in its spec, got {self.model}"
            )
        return self.examples * self.tokens / model.tokens_per_example / MILLION

    def met_by(self, candidate: Candidate[Offer]) -> bool:
        """Whether a candidate is in time and within the budget."""
        limit = self.deadline_seconds
        late = limit is not None and candidate.seconds > limit
        return not late and (self.budget is None or candidate.cost.mean <= self.budget)

    def chances(self, candidate: Candidate[Offer]) -> Mapping[str, float | None]:
        """Probabilities that a candidate keeps each limit, and both; None of an exact time."""
        job, observed, within = candidate.key.job, candidate.key.row.observed, {}
        time = job.work.time
        bills = [job.bill(end) for end in (time.low, time.mean, time.high)]
        if self.deadline_seconds is not None:
            drawn = draws_along(observed, time, [bill.elapsed_seconds for bill in bills])
            within["deadline"] = drawn <= float(self.deadline_seconds)
        if self.budget is not None:
            drawn = draws_along(observed, time, [bill.total for bill in bills])
            within["budget"] = drawn <= float(self.budget)
        if len(within) > 1:
            within["both"] = within["deadline"] & within["budget"]
        exact = time.low == time.high
        return {name: None if exact else float(each.mean()) for name, each in within.items()}

    def decision(self, candidates: Sequence[Candidate[Offer]]) -> Decision[Offer]:
        """The best of candidates, cheapest first; without one, the nearest to the limits."""
        if self.deadline_seconds is None:
            if self.budget is None:
                return Decision(next(iter(candidates), None))
            return fastest_within(candidates, self.budget)
        decision = cheapest_within(candidates, self.deadline_seconds)
        if decision.choice and not self.met_by(decision.choice):
            return Decision(None, decision.choice)
        return decision


@dataclass(frozen=True, slots=True)
class SwitchPoint:
    """An input's value at which the ``changed`` candidate costs as much as the ``rival``."""

    changed: Candidate[Offer]
    rival: Candidate[Offer]
    switch: Switch


@dataclass(frozen=True, slots=True)
class CheapestAnswer:
    """The choice among offers, its odds, and the machines that have no time.

    ``other_stacks`` are the cheapest in each other software.
    """

    demand: Demand
    offers: Offers
    choice: Candidate[Offer]
    batch: BatchChoice[Offer]
    odds: Odds[Machine]
    without: tuple[NoTime, ...]
    other_stacks: tuple[Candidate[Offer], ...]

    @property
    def ordered(self) -> tuple[Candidate[Offer], ...]:
        """All candidates, the best by the demand first."""
        candidates = self.offers.candidates
        if not self.demand.fastest:
            return candidates
        return tuple(sorted(candidates, key=lambda candidate: candidate.seconds))

    @property
    def alternatives(self) -> tuple[Candidate[Offer], ...]:
        """The other candidates that meet the demand, the next best first."""
        met = filter(self.demand.met_by, self.ordered)
        return tuple(candidate for candidate in met if candidate is not self.choice)

    @property
    def runner_up(self) -> Candidate[Offer] | None:
        """The next best on another machine or plan, whatever its batch size."""
        place = place_of(self.choice)
        return next(
            (candidate for candidate in self.alternatives if place_of(candidate) != place), None
        )

    @property
    def switch_points(self) -> tuple[SwitchPoint, ...]:
        """The inputs of the choice and of the next at which both cost the same.

        None where the fastest is demanded.
        """
        rival, points = self.runner_up, []
        if rival is None or self.demand.fastest:
            return ()
        one_plan = rival.key.job.price.id == self.choice.key.job.price.id
        for changed, fixed in ((self.choice, rival), (rival, self.choice)):
            job = changed.key.job
            for name in [SPEED] if one_plan else job.input_names():
                switch = switching_value(job, name, fixed.cost.mean)
                if switch is not None:
                    points.append(SwitchPoint(changed, fixed, switch))
        return tuple(points)


def place_of(candidate: Candidate[Offer]) -> tuple[object, ...]:
    """The machine and the plan, whatever the batch size and the software."""
    return candidate.key.row.observed.machine, candidate.key.job.price.id


def name_of(candidate: Candidate[Offer]) -> str:
    """The machine, the batch and the plan."""
    row = candidate.key.row
    return f"{row.observed.machine.name}, batch {row.observed.batch_size}, {row.plan}"


def cheapest_answer(inputs: Inputs, demand: Demand) -> CheapestAnswer:
    """Choose by the demand; raises InputError, naming what comes nearest, without a choice."""
    catalogue = inputs.catalogue
    if demand.model not in catalogue.published:
        catalogue.model(demand.model)
    (best, *slower_stacks), without = _offers(inputs, demand)
    choice = _choice(demand, best)
    sized = [(candidate.key.row.observed.batch_size, candidate) for candidate in best.candidates]
    competing = [candidate.key.row for candidate in best.candidates if demand.met_by(candidate)]
    goal = _MODES[demand.mode][0]
    return CheapestAnswer(
        demand,
        best,
        choice,
        cheapest_batch(sized, accuracies(catalogue, demand.model)),
        odds_of(choice.key.row, competing, goal, demand.quantity),
        without,
        tuple(stack.candidates[0] for stack in slower_stacks if stack.candidates),
    )


def _offers(inputs: Inputs, demand: Demand) -> tuple[tuple[Offers, ...], tuple[NoTime, ...]]:
    """The offers of each stack, the demanded or the best known first; machines without a time."""
    goal, work = _MODES[demand.mode]
    times = times_of(inputs, [demand.model], demand.precision)
    stacks = by_stack(price_rows(inputs.catalogue, times.observations), goal)
    ordered = sorted(stacks, key=lambda rows: rows[0].observed.stack != demand.software)
    if ordered and demand.software in (None, ordered[0][0].observed.stack):
        times_over = demand.millions(inputs.catalogue.models.get(demand.model))
        return tuple(offers(rows, goal, times_over) for rows in ordered), times.without
    terms = " in ".join(filter(None, (demand.software, demand.precision)))
    if terms:
        raise InputError(
            f"{demand.model}: expected a time of a {work} in {terms}, found none: "
            "leave out --software and --precision for what is known"
        )
    folders = ", ".join(map(str, inputs.folders))
    raise InputError(
        f"{demand.model}: expected a time of a {work}, found none in {folders} and none in "
        f"specs/published: measure it with `epochcost run --model {demand.model}`"
    )


def _choice(demand: Demand, offered: Offers) -> Candidate[Offer]:
    if not offered.candidates:
        reasons = "".join(
            f"\n  {row.observed.machine.name}, {row.plan}: {reason}"
            for row, reason in offered.unpriced
        )
        raise InputError(f"{demand.model}: expected a price, got times without one:{reasons}")
    currency = offered.candidates[0].cost.currency
    if demand.budget is not None and demand.currency != currency:
        raise InputError(f"budget: expected {currency}, as the prices, got {demand.currency}")
    decision = demand.decision(offered.candidates)
    if decision.choice is None:
        nearest = decision.nearest
        assert nearest is not None, "of candidates one is nearest"
        amount, time = money(nearest.cost.mean, currency), seconds(float(nearest.seconds))
        raise InputError(
            f"expected {demand.phrase}, found none: nearest is {name_of(nearest)}: "
            f"{amount} in {time}"
        )
    return decision.choice
