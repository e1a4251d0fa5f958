"""`epochcost cheapest`: on which machine and plan a model costs least, and what would change that.

Candidates are stored results and published timings under today's prices of their machines.
"""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import typer

from epochcost.analysis.inputs import read_inputs
from epochcost.analysis.observations import Goal, observe
from epochcost.analysis.predicted import NoTime, predict_times
from epochcost.analysis.rows import Offer, Offers, accuracies, offers, price_rows
from epochcost.cli.bundled import catalogue_to_read, results_to_read
from epochcost.cli.cheapest_answer import (
    MODES,
    CheapestAnswer,
    Demand,
    Mode,
    SwitchPoint,
    effects_of,
    explanation,
    name_of,
    near_choices,
    switch_points,
)
from epochcost.cli.terminal import (
    RESULTS,
    ExactFigures,
    ResultsFolder,
    ids,
    print_json,
    print_table,
)
from epochcost.cost import Candidate, frontier
from epochcost.cost.compare import cheapest_batch, cheapest_within, fastest_within
from epochcost.cost.sensitivity import Effect
from epochcost.errors import InputError
from epochcost.specs.catalogue import Catalogue
from epochcost.units import money, parse_decimal, parse_duration_seconds, seconds

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
    mode: Annotated[
        Mode, typer.Option(help="All epochs, a million inferences, or one epoch of a longer job.")
    ] = "training",
    results: ResultsFolder = RESULTS,
    form: ExactFigures = "text",
) -> None:
    """Show where a model costs least, and what would change that."""
    amount, currency = _budget(budget)
    limit = None if deadline is None else parse_duration_seconds(deadline)
    answer = _answer(catalogue_to_read(), Demand(model, mode, limit, amount, currency), results)
    if form == "json":
        print_json(_as_json(answer))
    else:
        _show(answer)


def _budget(text: str | None) -> tuple[Decimal | None, str]:
    if text is None:
        return None, "USD"
    found = re.fullmatch(r"([0-9.]+)\s*([A-Z]{3})?", text)
    amount = parse_decimal(found[1], "budget") if found else Decimal(0)
    if found is None or amount <= 0:
        raise InputError(f"budget: expected an amount above 0, such as 5USD, got {text!r:.80}")
    return amount, found[2] or "USD"


def _answer(catalogue: Catalogue, demand: Demand, results: Path) -> CheapestAnswer:
    found, without = _offers(catalogue, demand, results)
    sized = [(one.key.row.observed.batch_size, one) for one in found.candidates]
    batch = cheapest_batch(sized, accuracies(catalogue, demand.model))
    return CheapestAnswer(demand, found, _choice(demand, found), batch, without)


def _offers(
    catalogue: Catalogue, demand: Demand, results: Path
) -> tuple[Offers, tuple[NoTime, ...]]:
    if demand.model not in catalogue.published:
        catalogue.model(demand.model)
    folder = results_to_read(results)
    inputs = read_inputs(catalogue, [folder], folder.parent.parent)
    for problem in inputs.problems:
        typer.echo(problem, err=True)
    timed = [one for one in observe(inputs) if one.workload.id == demand.model]
    models = [one for one in (catalogue.models.get(demand.model),) if one]
    predicted = predict_times(inputs, models)
    observed = [*timed, *predicted.beyond(timed)]
    found = offers(price_rows(catalogue, observed), _GOALS[demand.mode])
    if not found.candidates and not found.unpriced:
        raise InputError(
            f"{demand.model}: expected a time of a {MODES[demand.mode]}, found none in {results} "
            f"and none in specs/published: measure it with `epochcost run --model {demand.model}`"
        )
    known = {one.machine.hardware for one in timed}
    return found, tuple(one for one in predicted.without if one.id not in known)


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
    if demand.deadline_seconds is not None:
        decision = cheapest_within(listed, demand.deadline_seconds)
    elif demand.budget is not None:
        decision = fastest_within(listed, demand.budget)
    else:
        return listed[0]
    choice = decision.choice
    if choice is None or not demand.met_by(choice):
        nearest = choice or decision.nearest
        assert nearest is not None, "of candidates one is nearest"
        raise InputError(f"expected {demand.words}, found none: nearest is {_words(nearest)}")
    return choice


def _words(one: Candidate[Offer]) -> str:
    cost = money(one.cost.mean, one.cost.currency)
    return f"{name_of(one)}: {cost} in {seconds(float(one.seconds))}"


def _show(answer: CheapestAnswer) -> None:
    order = "fastest" if answer.demand.fastest else "cheapest"
    typer.echo(f"Choices for {answer.demand.words}, {order} first\n")
    header = ("machine", "software", "batch", "plan", "time", "cost", "lies between", "figures")
    print_table(header, [_row(one) for one in answer.ordered])
    typer.echo("\n" + "\n".join(explanation(answer)))
    if answer.offers.apart:
        typer.echo("\nNever the choice, for the runtime of today has no kernels for them:\n")
        print_table(header, [_row(one) for one in answer.offers.apart])
    if answer.offers.unpriced:
        typer.echo("\nNot compared:")
        for row, reason in answer.offers.unpriced:
            typer.echo(f"  {row.observed.machine.name}, {row.plan}: {reason}")
    if answer.without:
        typer.echo("\nNo time is predicted of:")
        for one in answer.without:
            typer.echo(f"  {one.id}: {one.reason}")


def _row(one: Candidate[Offer]) -> tuple[str, ...]:
    row, cost = one.key.row, one.cost
    return (
        row.observed.machine.name,
        row.observed.software,
        str(row.observed.batch_size),
        row.plan,
        seconds(float(one.seconds)),
        money(cost.mean, cost.currency),
        cost.between or "—",
        row.mark,
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
        "may_be_as_cheap": [place[id(one)] for one in near_choices(answer)],
        "candidates": [_candidate(one) | {"on_frontier": id(one) in best} for one in listed],
        "effects": [_effect(one) for one in effects_of(answer)],
        "changes_at": [_turn(one, place) for one in switch_points(answer)],
        "as_accurate": {
            "batch_size": answer.batch.batch_size,
            "demanded_percent": answer.batch.demanded,
            "unknown_batch_sizes": answer.batch.unknown,
        },
        "apart": [
            _candidate(one) | {"reason": one.key.row.observed.unserved}
            for one in answer.offers.apart
        ],
        "without_time": [{"id": one.id, "reason": one.reason} for one in answer.without],
        "unpriced": [
            {"machine": row.observed.machine.name, "plan": row.plan, "reason": reason}
            for row, reason in answer.offers.unpriced
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
