"""What `epochcost cheapest` is asked and answers: its choice, why, and how sure that is.

How the answer is found and laid out is left to the command.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Literal

from epochcost.analysis.machines import Machine
from epochcost.analysis.observations import Stack
from epochcost.analysis.odds import Odds, Quantity, draws_along, odds_sentence, scenarios
from epochcost.analysis.predicted import NoTime
from epochcost.analysis.rows import Offer, Offers
from epochcost.cost import Candidate
from epochcost.cost.compare import BatchChoice
from epochcost.cost.sensitivity import SPEED, Effect, Switch, effects, switching_value
from epochcost.predict.design import Precision
from epochcost.units import money, plain, price_age, seconds, software_words

Mode = Literal["training", "inference", "epoch"]
MODES: Mapping[Mode, str] = MappingProxyType(
    {"training": "full training", "inference": "million inferences", "epoch": "epoch"}
)
_INPUTS = MappingProxyType(
    {
        "amount": "price per hour",
        "commitment.utilisation": "use of its commitment",
        "owned.purchase": "purchase",
        "owned.utilisation": "utilisation",
        "owned.electricity_per_kwh": "price of electricity",
        "interruptions.rate_per_hour": "rate of interruptions per hour",
        "interruptions": "interruptions",
        "speed": "speed",
        "time": "time",
    }
)
_MOST_TURNS = 2
_TWICE = 2


@dataclass(frozen=True, slots=True)
class Demand:
    """What is asked for: a model, which work of it, by when and for how much at most."""

    model: str
    mode: Mode
    deadline_seconds: Decimal | None
    budget: Decimal | None
    currency: str
    software: Stack | None = None
    precision: Precision | None = None

    @property
    def fastest(self) -> bool:
        """Whether the fastest is asked for: with a budget and no deadline."""
        return self.budget is not None and self.deadline_seconds is None

    def met_by(self, one: Candidate[Offer]) -> bool:
        """Whether a candidate is in time and within the budget."""
        late = self.deadline_seconds is not None and one.seconds > self.deadline_seconds
        return not late and (self.budget is None or one.cost.mean <= self.budget)

    def chances(self, one: Candidate[Offer]) -> Mapping[str, float | None]:
        """Probabilities that a candidate keeps each limit, and both; None of an exact time."""
        job, observed, kept = one.key.job, one.key.row.observed, {}
        time = job.work.time
        bills = [job.bill(end) for end in (time.low, time.mean, time.high)]
        if self.deadline_seconds is not None:
            drawn = draws_along(observed, time, [bill.elapsed_seconds for bill in bills])
            kept["deadline"] = drawn <= float(self.deadline_seconds)
        if self.budget is not None:
            drawn = draws_along(observed, time, [bill.total for bill in bills])
            kept["budget"] = drawn <= float(self.budget)
        if len(kept) > 1:
            kept["both"] = kept["deadline"] & kept["budget"]
        exact = time.low == time.high
        return {name: None if exact else float(each.mean()) for name, each in kept.items()}

    @property
    def words(self) -> str:
        """The demand as a phrase."""
        limits = []
        if self.deadline_seconds is not None:
            limits.append(f"within {seconds(float(self.deadline_seconds))}")
        if self.budget is not None:
            limits.append(f"for at most {money(self.budget, self.currency)}")
        return " ".join([f"a {MODES[self.mode]} of {self.model}", *limits])


@dataclass(frozen=True, slots=True)
class CheapestAnswer:
    """The choice among offers, its odds, and the machines that have no time.

    ``beside`` are the cheapest in each other software.
    """

    demand: Demand
    offers: Offers
    choice: Candidate[Offer]
    batch: BatchChoice[Offer]
    odds: Odds[Machine]
    without: tuple[NoTime, ...] = ()
    beside: tuple[Candidate[Offer], ...] = ()

    @property
    def ordered(self) -> tuple[Candidate[Offer], ...]:
        """All that can be compared, the best by what is asked for first."""
        found = self.offers.candidates
        return tuple(sorted(found, key=lambda one: one.seconds)) if self.demand.fastest else found

    @property
    def others(self) -> tuple[Candidate[Offer], ...]:
        """What else meets the demand, the next best first."""
        met = (one for one in self.ordered if self.demand.met_by(one))
        return tuple(one for one in met if one is not self.choice)


@dataclass(frozen=True, slots=True)
class SwitchPoint:
    """Where the answer turns: an input of one candidate at which it costs as much as another."""

    changed: Candidate[Offer]
    other: Candidate[Offer]
    switch: Switch


def explanation(answer: CheapestAnswer) -> Iterator[str]:
    """The choice, then a line for each thing to know about it."""
    choice, cost = answer.choice, answer.choice.cost
    yield (
        f"{_superlative(answer)}: {name_of(choice)}: {money(cost.mean, cost.currency)} "
        f"in {seconds(float(choice.seconds))} with {_software(choice)}."
    )
    for other in answer.beside:
        amount, time = money(other.cost.mean, other.cost.currency), seconds(float(other.seconds))
        yield f"In {_software(other)}: {amount} in {time}, {name_of(other)}."
    yield _reason(answer)
    yield f"How sure: {'; '.join(_sureness(answer))}."
    yield from _confirmed(answer)
    yield from _odds_words(answer)
    turns = [_turn_words(turn.switch) for turn in _nearest_turns(answer)]
    if turns:
        yield f"It stays cheapest unless {' or '.join(turns)}."
    yield from _batches(answer)


def _software(one: Candidate[Offer]) -> str:
    observed = one.key.row.observed
    return software_words(observed.software, observed.precision)


def _superlative(answer: CheapestAnswer) -> str:
    demand = answer.demand
    if demand.fastest and demand.budget is not None:
        return f"Fastest for at most {money(demand.budget, demand.currency)}"
    if demand.deadline_seconds is not None:
        return f"Cheapest within {seconds(float(demand.deadline_seconds))}"
    return "Cheapest"


def _reason(answer: CheapestAnswer) -> str:
    other = runner_up(answer)
    if other is None:
        return "Nothing else can be compared with it."
    own, cost = answer.choice.cost.mean, other.cost.mean
    currency = answer.choice.cost.currency
    gap = money(abs(cost - own), currency)
    more = "more" if cost >= own else "less"
    time = seconds(float(other.seconds))
    return f"Next is {_brief_name(other)}: {gap} {more}, {money(cost, currency)} in {time}."


def _sureness(answer: CheapestAnswer) -> Iterator[str]:
    """How far the cost may be off and why, in parts of a sentence."""
    choice, price = answer.choice, answer.choice.key.job.price
    largest = choice.key.interval.largest
    if largest is None:
        yield "its time was published without an interval"
    else:
        yield f"{choice.cost.between}, mostly because of its {_input(largest.name)}"
    if choice.key.row.observed.kind == "predicted":
        yield "predicted, not measured there"
    if not (choice.cost.bounded or choice.key.job.work.time.bounded):
        yield f"too few samples for a low end: {_remedy(answer)}"
    if price.plan == "spot" and price.interruptions is None:
        yield "it may be taken back, no source says how often, and its cost leaves that out"
    if choice.cost.assumed:
        yield "its price is assumed, not a market price"
    if price.unconfirmed_words:
        yield f"no source confirms the {price.unconfirmed_words} of its price"
    if age := price_age(price.as_of):
        yield f"its price is {age}"


def _confirmed(answer: CheapestAnswer) -> Iterator[str]:
    """What costs least at a confirmed price, if the choice's is not and may cost as much."""
    choice = answer.choice
    others = [one for one in answer.others if not one.key.job.price.unconfirmed_words]
    if choice.key.job.price.unconfirmed_words and others and not answer.demand.fastest:
        least = others[0]
        if least.cost.mean <= choice.cost.high:
            amount = money(least.cost.mean, least.cost.currency)
            time = seconds(float(least.seconds))
            yield f"At a confirmed price: {amount} in {time}, {name_of(least)}."


def _remedy(answer: CheapestAnswer) -> str:
    """What bounds the cost of a choice that a few scattered samples were taken of."""
    size = answer.choice.key.row.observed.batch_size
    command = f"epochcost run --model {answer.demand.model} --batch-size {size} --rounds 3"
    return f"measure it longer on that machine, with `{command}`"


def _batches(answer: CheapestAnswer) -> Iterator[str]:
    """What is known of accuracy, where batch sizes are compared by a full training."""
    sizes = {one.key.row.observed.batch_size for one in answer.offers.candidates}
    if answer.demand.mode != "training" or len(sizes) < 2:
        return
    batch = answer.batch
    if batch.demanded is None:
        yield (
            "Batch sizes are compared by the epochs that are given for them; which accuracy each "
            "reaches is unknown."
        )
        return
    if batch.choice is not None:
        yield (
            f"Of batch sizes known to reach {plain(batch.demanded)} %, the cheapest is "
            f"{batch.batch_size}: {name_of(batch.choice)}."
        )
    for said, some in (("misses it", batch.less_accurate), ("is unknown", batch.unknown)):
        if some:
            yield f"The accuracy {said} for batch sizes {', '.join(map(str, some))}."


def _odds_words(answer: CheapestAnswer) -> Iterator[str]:
    """How often the choice keeps the limits and is the best, and what is lost where it is not."""
    demand, chances = answer.demand, answer.odds
    limits = demand.chances(answer.choice)
    yield from _limit_words(demand, limits)
    if len(chances.shares) == 1:
        return
    quantity: Quantity = "time" if demand.fastest else "cost"
    yield odds_sentence(chances, quantity, "machines within the limits" if limits else "machines")
    if chances.rivals:
        near = chances.rivals[0]
        low, middle, high = (f"{ratio:.2f}" for ratio in chances.ratios[near])
        better = "faster" if demand.fastest else "cheaper"
        more = f"; {len(chances.rivals) - 1} more may be {better}" if chances.rivals[1:] else ""
        likely = f"likely {low} to {high}"
        yield f"Nearest is {near.name} at {middle} times the {quantity} ({likely}){more}."


def _limit_words(demand: Demand, chances: Mapping[str, float | None]) -> Iterator[str]:
    """How often the choice keeps the limits, in a sentence; nothing of an exact time."""
    names = {"both": "both"}
    if demand.budget is not None:
        names["budget"] = f"within {money(demand.budget, demand.currency)}"
    if demand.deadline_seconds is not None:
        names["deadline"] = f"within {seconds(float(demand.deadline_seconds))}"
    parts = [
        f"{names[name]} in {scenarios(share)}"
        for name, share in chances.items()
        if share is not None
    ]
    if parts:
        said = "; ".join([f"{parts[0]} scenarios", *parts[1:]])
        yield f"{said[:1].upper()}{said[1:]}."


def runner_up(answer: CheapestAnswer) -> Candidate[Offer] | None:
    """The next best on another machine or plan that meets the demand, whatever its batch size."""
    taken = place_of(answer.choice)
    return next((one for one in answer.others if place_of(one) != taken), None)


def effects_of(answer: CheapestAnswer) -> tuple[Effect, ...]:
    """What moves the cost of the choice."""
    return effects(answer.choice.key.job)


def switch_points(answer: CheapestAnswer) -> tuple[SwitchPoint, ...]:
    """Where inputs of the choice, and of the next, make both cost the same; none of the fastest."""
    other, found = runner_up(answer), []
    if other is None or answer.demand.fastest:
        return ()
    one_plan = other.key.job.price.id == answer.choice.key.job.price.id
    for changed, beside in ((answer.choice, other), (other, answer.choice)):
        job = changed.key.job
        for name in [SPEED] if one_plan else job.input_names():
            switch = switching_value(job, name, beside.cost.mean)
            if switch is not None:
                found.append(SwitchPoint(changed, beside, switch))
    return tuple(found)


def place_of(one: Candidate[Offer]) -> tuple[object, ...]:
    """The machine and the plan, whatever the batch size and the software."""
    return one.key.row.observed.machine, one.key.job.price.id


def name_of(one: Candidate[Offer]) -> str:
    """The machine, the batch and the plan."""
    row = one.key.row
    return f"{row.observed.machine.name}, batch {row.observed.batch_size}, {row.plan}"


def _brief_name(one: Candidate[Offer]) -> str:
    """The machine and the plan, as the table names them."""
    return f"{one.key.row.observed.machine.name}, {one.key.job.price.plan}"


def _input(name: str) -> str:
    part = re.fullmatch(r"components\[([0-9]+)\]\.(amount|percent)", name)
    if part:
        return f"{'price' if part[2] == 'amount' else 'percentage'} of part {int(part[1]) + 1}"
    return _INPUTS.get(name, name)


def _nearest_turns(answer: CheapestAnswer) -> list[SwitchPoint]:
    """The smallest changes of the choice that would make the next as cheap."""
    own = [turn for turn in switch_points(answer) if turn.changed is answer.choice]
    return sorted(own, key=lambda turn: abs(_ratio(turn.switch) - 1))[:_MOST_TURNS]


def _ratio(switch: Switch) -> Decimal:
    return switch.value / switch.now


def _turn_words(switch: Switch) -> str:
    """A change as one would say it: by its share, or from twice on by its factor."""
    ratio, size = _ratio(switch), abs(_ratio(switch) - 1) * 100
    if switch.name == SPEED:
        return f"it runs {size:.2g} % {'slower' if ratio < 1 else 'faster'}"
    if ratio >= _TWICE:
        return f"its {_input(switch.name)} is {float(ratio):.3g} times as high"
    return f"its {_input(switch.name)} {'rises' if ratio > 1 else 'falls'} {size:.2g} %"
