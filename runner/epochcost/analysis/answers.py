"""Answer questions about times, costs and the cheapest machine, for commands and pages."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from epochcost.analysis.inputs import Inputs
from epochcost.analysis.machines import Machine, hardware_option
from epochcost.analysis.observations import Goal, Stack
from epochcost.analysis.odds import Odds, Quantity, draws_along, odds
from epochcost.analysis.predicted import NoTime, Times
from epochcost.analysis.rows import (
    WORK_NAMES,
    Offer,
    Offers,
    Row,
    accuracies,
    by_stack,
    offers,
    price_rows,
)
from epochcost.analysis.times import times_of
from epochcost.cost.compare import NO_LIMITS, BatchChoice, Candidate, Limits, cheapest_batch
from epochcost.cost.money import exact_arithmetic
from epochcost.cost.sensitivity import SPEED, Switch, switching_value
from epochcost.errors import InputError
from epochcost.predict.design import Precision
from epochcost.predict.process import Vector
from epochcost.specs.api import MILLION
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.model import Model
from epochcost.specs.study import AT_HAND
from epochcost.statistics import first_by
from epochcost.units import plain, render_count

# Machines that an error names, each with the reason why its time cannot be billed.
_MOST_REASONS = 5
Mode = Literal["training", "inference", "epoch"]
_GOALS: Mapping[Mode, Goal] = {"training": "full", "inference": "million", "epoch": "epoch"}


def rows_of(inputs: Inputs, workloads: Collection[str]) -> tuple[Row, ...]:
    """Priced rows of workloads (ids); raises InputError if times or rates cannot be read."""
    return price_rows(inputs.catalogue, times_of(inputs, workloads).observations)


@dataclass(frozen=True, slots=True)
class Demand:
    """A request for the cheapest or fastest machine to train or run a model, within limits.

    Without ``software`` or ``precision``, any is considered. Inference processes ``examples``
    examples of ``tokens`` tokens each; None means as many as the model's spec states.
    """

    model: str
    mode: Mode
    limits: Limits = NO_LIMITS
    software: Stack | None = None
    precision: Precision | None = None
    examples: Decimal = Decimal(MILLION)
    tokens: int | None = None

    @property
    def quantity(self) -> Quantity:
        """The quantity to minimise: time if the fastest candidate is demanded, else cost."""
        return "time" if self.limits.fastest else "cost"

    @property
    def phrase(self) -> str:
        """Describe the demand, for example "a full training of lenet within 2 h"."""
        work = f"{WORK_NAMES[_GOALS[self.mode]]} of {self.model}"
        if self.mode == "inference" and (self.examples != MILLION or self.tokens):
            work = f"{plain(self.examples / MILLION)} million inferences of {self.model}"
            if self.examples < MILLION:
                work = f"{render_count(int(self.examples), 'inference')} of {self.model}"
            work += f", {self.tokens} tokens each" if self.tokens else ""
        return " ".join([work, *self.limits.phrases.values()])

    def millions(self, model: Model | None) -> Decimal:
        """The demanded examples, in millions of examples with as many tokens as in the spec.

        An example with twice the spec's tokens counts as two, although attention takes more than
        twice the time. Raises InputError if ``tokens`` is set but the model's examples are not
        texts, or if ``tokens`` is more than the model accepts.
        """
        if self.tokens is None:
            return self.examples / MILLION
        if model is None or model.tokens_per_example is None:
            raise InputError(
                f"--tokens {self.tokens}: expected a model whose examples are texts, with "
                f"tokens_per_example in its spec, got {self.model}"
            )
        if model.most_tokens is not None and self.tokens > model.most_tokens:
            raise InputError(
                f"--tokens {self.tokens}: {self.model} reads at most {model.most_tokens} tokens of "
                f"a text; give --tokens {model.most_tokens} if longer texts are cut"
            )
        return self.examples * self.tokens / model.tokens_per_example / MILLION

    def value(self, candidate: Candidate[Offer]) -> Decimal:
        """Mean time of a candidate if the fastest candidate is demanded, else its mean cost."""
        return candidate.seconds if self.limits.fastest else candidate.cost.mean

    def chances(self, candidate: Candidate[Offer]) -> Mapping[str, float | None]:
        """Probabilities that a candidate meets the deadline, the budget, and both together.

        A limit that is not set has no entry. The values are None if the time has no interval.
        """
        time, within = candidate.key.job.work.time, {}
        deadline, budget = self.limits.deadline_seconds, self.limits.budget
        if deadline is not None:
            within["deadline"] = _draw_values(candidate, "time") <= float(deadline)
        if budget is not None:
            within["budget"] = _draw_values(candidate, "cost") <= float(budget)
        if len(within) > 1:
            within["both"] = within["deadline"] & within["budget"]
        exact = time.low == time.high
        return {name: None if exact else float(each.mean()) for name, each in within.items()}


@dataclass(frozen=True, slots=True)
class SwitchPoint:
    """A value of an input of ``changed``, such as a price, at which ``rival`` costs the same."""

    changed: Candidate[Offer]
    rival: Candidate[Offer]
    switch: Switch


@dataclass(frozen=True, slots=True)
class CheapestAnswer:
    """The cheapest (or fastest) candidate, ``choice``, and why times are missing (``without``).

    A candidate is a machine with a batch size and a price plan. ``offers`` has the candidates of
    the software stack of ``choice``. ``batch`` has the cheapest of these whose batch size is not
    known to lower the accuracy of the trained model. ``other_stacks`` has the other stack's best
    candidate within the limits, or else its cheapest. It is empty if that stack has no priced time.
    """

    demand: Demand
    offers: Offers
    choice: Candidate[Offer]
    batch: BatchChoice[Offer]
    without: tuple[NoTime, ...]
    other_stacks: tuple[Candidate[Offer], ...]

    @property
    def ordered(self) -> tuple[Candidate[Offer], ...]:
        """All candidates, the cheapest first, or the fastest first if the demand is for speed."""
        return tuple(sorted(self.offers.candidates, key=self.demand.value))

    @property
    def alternatives(self) -> tuple[Candidate[Offer], ...]:
        """Candidates other than ``choice`` that meet the demand's limits, the best first."""
        met = filter(self.demand.limits.met_by, self.ordered)
        return tuple(candidate for candidate in met if candidate is not self.choice)

    @property
    def odds(self) -> Odds[Machine]:
        """For each machine, the probability that it is the cheapest (the fastest, if demanded)."""
        best = first_by((self.choice, *self.alternatives), _machine)
        with exact_arithmetic():
            draws = {_machine(each): _draw_values(each, self.demand.quantity) for each in best}
        return odds(_machine(self.choice), draws)

    @property
    def runner_up(self) -> Candidate[Offer] | None:
        """The best alternative on another machine or price plan; None if there is none."""
        place = place_of(self.choice)
        return next((each for each in self.alternatives if place_of(each) != place), None)

    @property
    def switch_points(self) -> tuple[SwitchPoint, ...]:
        """Values of inputs (a price, say) at which ``choice`` and ``runner_up`` cost the same.

        Empty without a runner-up, or if the demand is for the fastest candidate.
        """
        rival, points = self.runner_up, []
        if rival is None or self.demand.limits.fastest:
            return ()
        one_plan = rival.key.job.price.id == self.choice.key.job.price.id
        for changed, fixed in ((self.choice, rival), (rival, self.choice)):
            job = changed.key.job
            for name in [SPEED] if one_plan else job.input_names():
                switch = switching_value(job, name, fixed.cost.mean)
                if switch is not None:
                    points.append(SwitchPoint(changed, fixed, switch))
        return tuple(points)


def _machine(candidate: Candidate[Offer]) -> Machine:
    return candidate.key.row.observed.machine


def _draw_values(candidate: Candidate[Offer], quantity: Quantity) -> Vector:
    """Random samples of a candidate's time or cost, including machine starts and interruptions."""
    job, time = candidate.key.job, candidate.key.job.work.time
    bills = [job.bill(end) for end in (time.low, time.mean, time.high)]
    values = [bill.total if quantity == "cost" else bill.elapsed_seconds for bill in bills]
    return draws_along(candidate.key.row.observed, time, values)


def place_of(candidate: Candidate[Offer]) -> tuple[object, ...]:
    """The machine and price plan of a candidate, to tell whether two candidates share both."""
    return _machine(candidate), candidate.key.job.price.id


def name_of(candidate: Candidate[Offer]) -> str:
    """Name a candidate's machine, batch size and price plan for readers."""
    row = candidate.key.row
    return f"{row.observed.machine.name}, batch {row.observed.batch_size}, {row.plan}"


def cheapest_answer(catalogue: Catalogue, times: Times, demand: Demand) -> CheapestAnswer:
    """Choose the cheapest candidate within the limits, or the fastest if only a budget is set.

    ``times`` are those of the demand's model and precision. Raises InputError if no time or price
    is known, or if no candidate meets the limits. The error then names the cheapest candidate that
    meets the deadline, or else the fastest one.
    """
    best, *slower_stacks = _offers_by_stack(catalogue, times, demand)
    choice = _choice(demand, best)
    sized = [(candidate.key.row.observed.batch_size, candidate) for candidate in best.candidates]
    return CheapestAnswer(
        demand,
        best,
        choice,
        cheapest_batch(sized, accuracies(catalogue, demand.model)),
        _without_time(times, demand),
        tuple(_best_of(stack, demand) for stack in slower_stacks if stack.candidates),
    )


def _best_of(stack: Offers, demand: Demand) -> Candidate[Offer]:
    met = filter(demand.limits.met_by, sorted(stack.candidates, key=demand.value))
    return next(met, stack.candidates[0])


def _offers_by_stack(catalogue: Catalogue, times: Times, demand: Demand) -> tuple[Offers, ...]:
    """Make offers from the times that fit ``demand``, grouped by software stack.

    Times at superseded prices or with unknown epochs are left out. The stack that ``demand`` names
    comes first, or else the one with the surest times. Raises InputError if there is no such time.
    """
    goal = _GOALS[demand.mode]
    work, model = WORK_NAMES[goal], catalogue.models.get(demand.model)
    rows = price_rows(catalogue, times.observations)
    stacks = by_stack((row for row in rows if row.answers), goal)
    ordered = sorted(stacks, key=lambda rows: rows[0].observed.stack != demand.software)
    if ordered and demand.software in (None, ordered[0][0].observed.stack):
        times_over = demand.millions(model)
        return tuple(offers(rows, goal, times_over) for rows in ordered)
    terms = " in ".join(filter(None, (demand.software, demand.precision)))
    if terms:
        raise InputError(
            f"{demand.model}: expected a time of {work} in {terms}, found none: "
            "leave out --software and --precision to see all known times"
        )
    if any(row.time(goal) for row in rows):
        raise InputError(
            f"{demand.model}: expected a time of {work}, found only times at batch sizes above the "
            f"source's, or at superseded prices{remedy(catalogue, demand.model, goal)}"
        )
    without = _without_time(times, demand)
    reasons = dict.fromkeys(each.words for each in without if each.id == demand.model)
    unpredicted = f", and none is predicted ({'; '.join(reasons)})" if reasons else ""
    raise InputError(
        f"{demand.model}: expected a time of {work}, found none in the results and none in "
        f"specs/published{unpredicted}{remedy(catalogue, demand.model, goal)}"
    )


def _without_time(times: Times, demand: Demand) -> tuple[NoTime, ...]:
    mode = "inference" if demand.mode == "inference" else "training"
    return tuple(gap for gap in times.without if gap.mode in ("", mode))


def remedy(catalogue: Catalogue, name: str, goal: Goal, hardware: str = AT_HAND) -> str:
    """What to do if a workload has no time, as the end of an error message; may be empty."""
    model = catalogue.models.get(name)
    if model is None:
        table = catalogue.published.get(name)
        of_model = table and table.model
        return f": its table is of {of_model}; choose --model {of_model}" if of_model else ""
    if model.decoder is not None:
        return ": `epochcost tokens` prices its tokens, and `epochcost finetune` its training"
    if model.graph is None:
        return ""
    if goal != "million" and not model.training:
        return ": its spec has no table [training]; choose --mode inference"
    return f": measure it with `epochcost run --model {model.id}{hardware_option(hardware)}`"


def _choice(demand: Demand, offered: Offers) -> Candidate[Offer]:
    if not offered.candidates:
        reasons = "".join(
            f"\n  {row.observed.machine.name}, {row.plan}: {reason}"
            for row, reason in offered.unpriced[:_MOST_REASONS]
        )
        if (more := len(offered.unpriced) - _MOST_REASONS) > 0:
            reasons += f"\n  … and {more} more"
        raise InputError(
            f"{demand.model}: expected a time that a price can bill, found none:{reasons}"
        )
    return demand.limits.choice(offered.candidates, name_of, demand.phrase)
