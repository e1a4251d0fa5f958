"""`epochcost cheapest`: on which machine and plan a model costs least, and what would change that.

Candidates are stored results and published timings under today's prices of their machines.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import typer

from epochcost.analysis.answers import choose, offers_of
from epochcost.analysis.machines import Machine
from epochcost.analysis.observations import Goal, Stack
from epochcost.analysis.odds import Odds, Quantity
from epochcost.analysis.predicted import NoTime
from epochcost.analysis.rows import Offer, Offers, accuracies, odds_of
from epochcost.cli.bundled import catalogue_to_read, inputs_to_read, results_to_read
from epochcost.cli.cheapest_answer import (
    MODES,
    CheapestAnswer,
    Demand,
    Mode,
    SwitchPoint,
    effects_of,
    explanation,
    name_of,
    place_of,
    switch_points,
)
from epochcost.cli.terminal import (
    RESULTS,
    ExactFigures,
    ResultsFolder,
    WideTable,
    ids,
    print_json,
    print_table,
    say,
)
from epochcost.cost import Candidate, frontier
from epochcost.cost.compare import cheapest_batch
from epochcost.cost.sensitivity import Effect
from epochcost.errors import InputError
from epochcost.predict.design import Precision
from epochcost.specs.catalogue import Catalogue
from epochcost.units import money, parse_decimal, parse_duration_seconds, seconds

_MOST_SHOWN = 10
_HEADER = (
    "  machine", "plan", "time", "cost", "between", "how known",
    "batch", "software", "precision", "provider", "region", "price of",
)  # fmt: skip
# What goes first where the terminal is too narrow for all.
_DROP = ("software", "precision", "region", "provider", "price of", "batch", "between")
_GOALS: MappingProxyType[Mode, Goal] = MappingProxyType(
    {"training": "full", "inference": "million", "epoch": "epoch"}
)


def cheapest(
    model: Annotated[
        str,
        typer.Option(help="A model's id, or a published table's.", autocompletion=ids("models")),
    ],
    deadline: Annotated[
        str | None, typer.Option(help="Time on the wall at most: 90m, 2h, 1h30m.")
    ] = None,
    budget: Annotated[
        str | None, typer.Option(help="Cost at most: 5USD. Without --deadline: the fastest then.")
    ] = None,
    software: Annotated[
        Stack | None,
        typer.Option(help="Ours, or others' as published. Without it: whose answer is known best."),
    ] = None,
    precision: Annotated[
        Precision | None,
        typer.Option(help="Without it: mixed on GPUs with tensor cores, fp32 elsewhere."),
    ] = None,
    mode: Annotated[
        Mode, typer.Option(help="All epochs, a million inferences, or one epoch of a longer job.")
    ] = "training",
    results: ResultsFolder = RESULTS,
    show_all: Annotated[
        bool, typer.Option("--all", help="All choices, and what is not compared and why.")
    ] = False,
    wide: WideTable = False,
    form: ExactFigures = "text",
) -> None:
    """Show where a model costs least, and what would change that.

    Example: epochcost cheapest --model mnist-cnn --deadline 2h --budget 5USD
    """
    amount, currency = _budget(budget)
    limit = None if deadline is None else parse_duration_seconds(deadline)
    demand = Demand(model, mode, limit, amount, currency, software, precision)
    answer = _answer(catalogue_to_read(), demand, results)
    if form == "json":
        print_json(_as_json(answer))
    else:
        _show(answer, show_all=show_all, wide=wide)


def _budget(text: str | None) -> tuple[Decimal | None, str]:
    if text is None:
        return None, "USD"
    found = re.fullmatch(r"([0-9.]+)\s*([A-Z]{3})?", text)
    amount = parse_decimal(found[1], "budget") if found else Decimal(0)
    if found is None or amount <= 0:
        raise InputError(f"budget: expected an amount above 0, such as 5USD, got {text!r:.80}")
    return amount, found[2] or "USD"


def _answer(catalogue: Catalogue, demand: Demand, results: Path) -> CheapestAnswer:
    (found, *beside), without = _offers(catalogue, demand, results)
    sized = [(one.key.row.observed.batch_size, one) for one in found.candidates]
    batch = cheapest_batch(sized, accuracies(catalogue, demand.model))
    choice = _choice(demand, found)
    competing = [one.key.row for one in found.candidates if demand.met_by(one)]
    quantity: Quantity = "time" if demand.fastest else "cost"
    chances = odds_of(choice.key.row, competing, _GOALS[demand.mode], quantity)
    others = tuple(one.candidates[0] for one in beside if one.candidates)
    return CheapestAnswer(demand, found, choice, batch, chances, without, others)


def _offers(
    catalogue: Catalogue, demand: Demand, results: Path
) -> tuple[tuple[Offers, ...], tuple[NoTime, ...]]:
    """The offers of each stack, the one that is asked for or is known best first."""
    if demand.model not in catalogue.published:
        catalogue.model(demand.model)
    inputs = inputs_to_read(catalogue, results_to_read(results))
    for problem in inputs.problems:
        say(problem, err=True)
    goal = _GOALS[demand.mode]
    found, without = offers_of(inputs, demand.model, goal, demand.software, demand.precision)
    if not found and (demand.software or demand.precision):
        asked = " in ".join(filter(None, (demand.software, demand.precision)))
        raise InputError(
            f"{demand.model}: expected a time of a {MODES[demand.mode]} in {asked}, found none: "
            "leave out --software and --precision for what is known"
        )
    if not found:
        raise InputError(
            f"{demand.model}: expected a time of a {MODES[demand.mode]}, found none in {results} "
            f"and none in specs/published: measure it with `epochcost run --model {demand.model}`"
        )
    return found, without


def _choice(demand: Demand, found: Offers) -> Candidate[Offer]:
    """The best by the demand; raises InputError, naming the nearest, where nothing meets it."""
    listed = found.candidates
    if not listed:
        reasons = "".join(
            f"\n  {row.observed.machine.name}, {row.plan}: {reason}"
            for row, reason in found.unpriced
        )
        raise InputError(f"{demand.model}: expected a price, got times without one:{reasons}")
    if demand.budget is not None and demand.currency != listed[0].cost.currency:
        raise InputError(
            f"budget: expected {listed[0].cost.currency}, as the prices, got {demand.currency}"
        )
    decision = choose(found, demand.deadline_seconds, demand.budget)
    if decision.choice is None:
        assert decision.nearest is not None, "of candidates one is nearest"
        nearest = _words(decision.nearest)
        raise InputError(f"expected {demand.words}, found none: nearest is {nearest}")
    return decision.choice


def _words(one: Candidate[Offer]) -> str:
    return f"{name_of(one)}: {_cost(one)}"


def _cost(one: Candidate[Offer]) -> str:
    return f"{money(one.cost.mean, one.cost.currency)} in {seconds(float(one.seconds))}"


def _show(answer: CheapestAnswer, *, show_all: bool, wide: bool) -> None:
    demand = answer.demand
    order = "fastest first, as --budget asks" if demand.fastest else "cheapest first"
    say(f"Choices for {demand.words}, {order}\n")
    shown = answer.ordered if show_all else _best(answer)
    left_out = print_table(_HEADER, [_row(one, answer) for one in shown], drop=_DROP, wide=wide)
    more = "; ".join(_more(answer, len(shown), left_out))
    say(f"  … {more}\n" if more else "")
    say("\n".join((*explanation(answer), "", *_groups(answer, show_all=show_all))))


def _best(answer: CheapestAnswer) -> tuple[Candidate[Offer], ...]:
    """The ten best that meet the demand, each on another machine or plan."""
    found: dict[object, Candidate[Offer]] = {}
    for one in filter(answer.demand.met_by, answer.ordered):
        found.setdefault(place_of(one), one)
    return tuple(found.values())[:_MOST_SHOWN]


def _more(answer: CheapestAnswer, shown: int, left_out: Sequence[str]) -> Iterator[str]:
    """What the table leaves out, and which option shows it."""
    if more := len(answer.ordered) - shown:
        yield f"{more} more: --all"
    if left_out:
        yield f"{', '.join(left_out[:2])}{', …' if left_out[2:] else ''}: --wide"


def _groups(answer: CheapestAnswer, *, show_all: bool) -> Iterator[str]:
    """What is not among the choices: a line that counts each kind, or all of it."""
    reasons = [(row, row.reservation or reason) for row, reason in answer.offers.unpriced]
    counts = Counter(reason for _, reason in reasons)
    not_compared = [
        f"{row.observed.machine.name}, {row.plan}: {reason}"
        for row, reason in answer.offers.unpriced
    ]
    without = [f"{one.id}: {one.reason}" for one in answer.without]
    said = "; ".join(f"{number}: {reason}" for reason, number in counts.most_common())
    for title, why, lines in (
        ("Not compared", said, not_compared),
        ("No time", "neither measured nor published nor predicted", without),
    ):
        if lines and show_all:
            yield "\n".join([f"{title}:", *(f"  {line}" for line in lines)])
        elif lines:
            yield f"{title}: {len(lines)} ({why}); --all lists them"


def _row(one: Candidate[Offer], answer: CheapestAnswer) -> tuple[str, ...]:
    row, cost = one.key.row, one.cost
    price = one.key.job.price
    return (
        f"{'> ' if one is answer.choice else '  '}{row.observed.machine.name}",
        price.plan_words,
        seconds(float(one.seconds)),
        money(cost.mean, cost.currency),
        cost.between or "—",
        row.mark,
        str(row.observed.batch_size),
        row.observed.software,
        row.observed.precision,
        price.provider,
        price.region or "",
        price.as_of.isoformat(),
    )


def _as_json(answer: CheapestAnswer) -> dict[str, Any]:
    """The whole answer as JSON's values; ``choice`` and the like are positions of candidates."""
    listed, demand = answer.ordered, answer.demand
    place = {id(one): number for number, one in enumerate(listed)}
    best = {id(one) for one in frontier(listed)}
    return {
        "model": demand.model,
        "mode": demand.mode,
        "order": "fastest" if demand.fastest else "cheapest",
        "deadline_seconds": demand.deadline_seconds,
        "budget": demand.budget,
        "choice": place[id(answer.choice)],
        "odds": _odds(answer.odds, "fastest" if demand.fastest else "cheapest"),
        "candidates": [
            _candidate(one) | {"on_frontier": id(one) in best, "within": demand.chances(one)}
            for one in listed
        ],
        "effects": [_effect(one) for one in effects_of(answer)],
        "changes_at": [_turn(one, place) for one in switch_points(answer)],
        "as_accurate": {
            "batch_size": answer.batch.batch_size,
            "demanded_percent": answer.batch.demanded,
            "unknown_batch_sizes": answer.batch.unknown,
        },
        "in_other_software": [_candidate(one) for one in answer.beside],
        "without_time": [{"id": one.id, "reason": one.reason} for one in answer.without],
        "unpriced": [
            {"machine": row.observed.machine.name, "plan": row.plan, "reason": reason}
            for row, reason in answer.offers.unpriced
        ],
    }


def _odds(chances: Odds[Machine], order: str) -> dict[str, Any]:
    """By machine, the probability of being the best and its cost or time over the choice's."""
    return {
        "wins": chances.wins,
        "regret": chances.regret,
        "machines": [
            {
                "machine": machine.name,
                "hardware": machine.hardware,
                order: share,
                "ratio": dict(zip(("low", "median", "high"), chances.ratios[machine], strict=True))
                if machine in chances.ratios
                else None,
            }
            for machine, share in chances.shares.items()
        ],
    }


def _effect(one: Effect) -> dict[str, Any]:
    return {
        "input": one.name,
        "value": one.value,
        "cost_at_0.9": one.lower,
        "cost_at_1.1": one.higher,
    }


def _turn(one: SwitchPoint, place: dict[int, int]) -> dict[str, Any]:
    return {
        "candidate": place[id(one.changed)],
        "against": place[id(one.other)],
        "input": one.switch.name,
        "now": one.switch.now,
        "value": one.switch.value,
    }


def _candidate(one: Candidate[Offer]) -> dict[str, Any]:
    row, cost, largest = one.key.row, one.cost, one.key.interval.largest
    return {
        "machine": row.observed.machine.name,
        "hardware": row.observed.machine.hardware,
        "price": cost.price_id,
        "software": row.observed.software,
        "stack": row.observed.stack,
        "precision": row.observed.precision,
        "batch_size": row.observed.batch_size,
        "seconds": one.seconds,
        "cost": cost.mean,
        "low": cost.low if cost.bounded else None,
        "high": cost.high,
        "currency": cost.currency,
        "price_as_of": one.key.job.price.as_of,
        "figures": row.mark,
        "least_sure": largest.name if largest else None,
    }
