"""`epochcost cheapest`: show the machine and price plan that cost least for a model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from typing import Annotated, Any

import typer

from epochcost.analysis import answers
from epochcost.analysis.machines import hardware_option
from epochcost.analysis.observations import Stack
from epochcost.analysis.odds import odds_sentence, scenarios, times_over
from epochcost.analysis.representatives import DIFFERS
from epochcost.analysis.rows import Offer, Row
from epochcost.cli.bundled import catalogue_to_read, times_to_read
from epochcost.cli.choices import LimitOptions, ListOptions, print_choices, render_range
from epochcost.cli.terminal import fields_of, ids, print_json, say, with_option_groups
from epochcost.cost.compare import Candidate
from epochcost.cost.sensitivity import SPEED, Switch
from epochcost.errors import InputError
from epochcost.predict.design import Precision
from epochcost.specs.api import MILLION
from epochcost.statistics import first_by
from epochcost.units import money, parse_count, plain, render_software, rounded, seconds

_MOST_SHOWN = 10
_HEADER = (
    "  machine", "plan", "time", "cost", "between", "how known",
    "batch", "software", "precision", "provider", "region", "price of",
)  # fmt: skip
# Columns to drop on a narrow terminal, the first ones first.
_DROP = ("software", "precision", "region", "provider", "price of", "batch", "between")
_INPUTS = {
    "amount": "price per hour",
    "commitment.utilisation": "use of its commitment",
    "owned.purchase": "purchase",
    "owned.utilisation": "utilisation",
    "owned.electricity_per_kwh": "price of electricity",
    "interruptions.rate_per_hour": "rate of interruptions per hour",
}
_MOST_TURNS = 2


@with_option_groups
def cheapest(
    *,
    model: Annotated[
        str, typer.Option(help="Id of a model or a published table.", autocompletion=ids("models"))
    ],
    limiting: LimitOptions,
    software: Annotated[
        Stack | None,
        typer.Option(
            help="Our runtime or published software. Default: the one with the surest answer."
        ),
    ] = None,
    precision: Annotated[
        Precision | None,
        typer.Option(help="Precision. Default: mixed on GPUs with tensor cores, fp32 elsewhere."),
    ] = None,
    mode: Annotated[
        answers.Mode | None,
        typer.Option(
            help="A full training (default), an inference, or an epoch of a longer training."
        ),
    ] = None,
    count: Annotated[
        str | None, typer.Option(help="Number of examples to infer: 10M, 500k. Default: a million.")
    ] = None,
    tokens: Annotated[
        int | None, typer.Option(min=1, help="Number of tokens in each text to infer.")
    ] = None,
    listing: ListOptions,
) -> None:
    """Show where a model costs least, and what would change this choice.

    Example: epochcost cheapest --model mnist-cnn --deadline 2h --budget 5USD
    """
    infers = count is not None or tokens is not None
    if infers and mode not in (None, "inference"):
        raise InputError(f"--mode {mode}: expected inference with --count or --tokens")
    mode = mode or ("inference" if infers else "training")
    examples = Decimal(MILLION) if count is None else parse_count(count, "count")
    demand = answers.Demand(model, mode, limiting.limits, software, precision, examples, tokens)
    catalogue = catalogue_to_read()
    times = times_to_read(catalogue, listing.results, model, precision)
    answer = answers.cheapest_answer(catalogue, times, demand)
    if listing.form == "json":
        print_json(_answer_fields(answer))
    else:
        _show(answer, listing)


def _show(answer: answers.CheapestAnswer, listing: ListOptions) -> None:
    demand = answer.demand
    order = "fastest first, as --budget asks" if demand.limits.fastest else "cheapest first"
    say(f"Choices for {demand.phrase}, {order}\n")
    met, beyond = demand.limits.divided(answer.ordered)
    best = first_by(met, answers.place_of)[:_MOST_SHOWN]
    row = partial(_row, answer.choice)
    print_choices(_HEADER, met, best, row, listing, drop=_DROP, beyond=beyond)
    left_out = _left_out_texts(answer, show_all=listing.show_all)
    say("\n".join((*_explanation_lines(answer), "", *left_out)))


def _row(choice: Candidate[Offer], candidate: Candidate[Offer]) -> tuple[str, ...]:
    row, cost, price = candidate.key.row, candidate.cost, candidate.key.job.price
    return (
        f"{'> ' if candidate is choice else '  '}{row.observed.machine.name}",
        price.plan_text,
        seconds(float(candidate.seconds)),
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


def _left_out_texts(answer: answers.CheapestAnswer, *, show_all: bool) -> Iterator[str]:
    unpriced = answer.offers.unpriced
    counts = Counter(_reason_not_compared(row, reason) for row, reason in unpriced)
    reasons = "; ".join(f"{number}: {reason}" for reason, number in counts.most_common())
    rows = [f"{row.observed.machine.name}, {row.plan}: {reason}" for row, reason in unpriced]
    machines = [f"{machine.id}: {machine.words}" for machine in answer.without]
    for title, why, lines in (
        ("Not compared", reasons, rows),
        ("No time", "neither measured nor published nor predicted", machines),
    ):
        if lines and show_all:
            yield "\n".join([f"{title}:", *(f"  {line}" for line in lines)])
        elif lines:
            yield f"{title}: {len(lines)} ({why}); --all lists them"


def _reason_not_compared(row: Row, reason: str) -> str:
    machine = f" ({row.observed.machine.name})" if row.observed.imprecise else ""
    return f"{row.reservation or reason}{machine}"


def _explanation_lines(answer: answers.CheapestAnswer) -> Iterator[str]:
    choice, demand = answer.choice, answer.demand
    limit = demand.limits.phrases.get("budget" if demand.limits.fastest else "deadline", "")
    best = f"{'Fastest' if demand.limits.fastest else 'Cheapest'} {limit}".rstrip()
    yield f"{best}: {answers.name_of(choice)}: {choice.figures} with {_software(choice)}."
    for candidate in answer.other_stacks:
        beyond = "" if demand.limits.met_by(candidate) else ", beyond the limits"
        name = answers.name_of(candidate)
        yield f"With {_software(candidate)}{beyond}: {candidate.figures}, {name}."
    yield _next_best(answer)
    yield f"How sure: {'; '.join(_range_and_doubts(answer))}."
    yield from _confirmed_price_sentence(answer)
    yield from _odds_sentences(answer)
    switches = [turn.switch for turn in answer.switch_points if turn.changed is choice]
    nearest = sorted(switches, key=_relative_change)[:_MOST_TURNS]
    if nearest:
        yield f"It stays cheapest unless {' or '.join(map(_render_needed_change, nearest))}."
    if demand.mode == "training":
        yield from _batch_accuracy_sentences(answer)


def _software(candidate: Candidate[Offer]) -> str:
    observed = candidate.key.row.observed
    return render_software(observed.software, observed.precision)


def _next_best(answer: answers.CheapestAnswer) -> str:
    runner_up = answer.runner_up
    if runner_up is None:
        return "There is nothing to compare it with."
    gap = runner_up.cost.mean - answer.choice.cost.mean
    place = f"{runner_up.key.row.observed.machine.name}, {runner_up.key.job.price.plan}"
    amount = money(abs(gap), answer.choice.cost.currency)
    return f"Next is {place}: {amount} {'more' if gap >= 0 else 'less'}, {runner_up.figures}."


def _range_of_cost(choice: Candidate[Offer]) -> str:
    largest, time = choice.key.interval.largest, choice.key.job.work.time
    if largest is not None:
        return f"{choice.cost.between}, mostly because of its {_input(largest.name)}"
    return render_range(choice.cost, time)


def _range_and_doubts(answer: answers.CheapestAnswer) -> Iterator[str]:
    choice, price = answer.choice, answer.choice.key.job.price
    observed = choice.key.row.observed
    yield _range_of_cost(choice)
    if observed.kind == "predicted":
        yield "predicted, not measured there"
    if differences := [doubt for doubt in observed.doubts if doubt.startswith(DIFFERS)]:
        words = " and ".join(doubt.removeprefix(f"{DIFFERS}: ") for doubt in differences)
        yield f"the measured machine {DIFFERS}: {words}"
    if choice.cost.between and not choice.key.job.work.time.bounded:
        yield (
            "too few samples for a lower bound: measure longer there, with `epochcost run "
            f"--model {answer.demand.model}{hardware_option(observed.machine.hardware)} "
            f"--batch-size {observed.batch_size} --rounds 3`"
        )
    if price.interruptions_unknown:
        yield "it can be interrupted; no source says how often, so its cost leaves that out"
    if choice.cost.assumed:
        yield "its price is assumed, not a market price"
    if price.unconfirmed_text:
        yield f"no source confirms the {price.unconfirmed_text} of its price"
    if price.age:
        yield f"its price is {price.age}"


def _confirmed_price_sentence(answer: answers.CheapestAnswer) -> Iterator[str]:
    choice = answer.choice
    if choice.key.job.price.unconfirmed_text and not answer.demand.limits.fastest:
        confirmed = (row for row in answer.alternatives if not row.key.job.price.unconfirmed_text)
        if least := next(confirmed, None):
            yield f"At a confirmed price: {least.figures}, {answers.name_of(least)}."


def _odds_sentences(answer: answers.CheapestAnswer) -> Iterator[str]:
    demand, chances = answer.demand, answer.odds
    limits = {"both": "both", **demand.limits.phrases}
    if demand.limits.budget is not None:
        limits["budget"] = f"within {demand.limits.budget_text}"
    by_limit = demand.chances(answer.choice)
    first, *more = [
        f"{limits[name]} in {scenarios(share)}"
        for name, share in by_limit.items()
        if share is not None
    ] or [""]
    if first:
        yield "; ".join([f"{first[0].upper()}{first[1:]} scenarios", *more]) + "."
    if len(chances.shares) == 1:
        return
    yield odds_sentence(chances, demand.quantity, demand.limits.machines_text)
    if chances.rivals:
        near = chances.rivals[0]
        low, high = chances.ratios[near]
        rival = next(way for way in answer.alternatives if way.key.row.observed.machine == near)
        factor = times_over(demand.value(rival), demand.value(answer.choice))
        better = "faster" if demand.limits.fastest else "cheaper"
        rivals = f"; {len(chances.rivals) - 1} more may be {better}" if chances.rivals[1:] else ""
        yield (
            f"The closest rival is {near.name} at {factor:.2f} times the {demand.quantity} "
            f"(likely {low:.2f} to {high:.2f}){rivals}."
        )


def _batch_accuracy_sentences(answer: answers.CheapestAnswer) -> Iterator[str]:
    batch = answer.batch
    if len({candidate.key.row.observed.batch_size for candidate in answer.offers.candidates}) < 2:
        return
    if batch.demanded is None:
        yield (
            "Batch sizes are compared by the epochs declared for them; the accuracy that each "
            "reaches is unknown."
        )
        return
    if batch.choice is not None:
        beyond = "" if answer.demand.limits.met_by(batch.choice) else ", beyond the limits"
        yield (
            f"Of batch sizes known to reach {plain(batch.demanded)} %, the cheapest is "
            f"{batch.batch_size}: {answers.name_of(batch.choice)}{beyond}."
        )
    for verb, sizes in (("misses it", batch.less_accurate), ("is unknown", batch.unknown)):
        if sizes:
            yield f"The accuracy {verb} for batch sizes {', '.join(map(str, sizes))}."


def _input(name: str) -> str:
    part = re.fullmatch(r"components\[([0-9]+)\]\.(amount|percent)", name)
    if part:
        return f"{'price' if part[2] == 'amount' else 'percentage'} of part {int(part[1]) + 1}"
    return _INPUTS.get(name, name)


def _relative_change(switch: Switch) -> Decimal:
    return abs(switch.value / switch.now - 1) if switch.now else Decimal("Infinity")


def _render_needed_change(switch: Switch) -> str:
    if not switch.now:
        return f"its {_input(switch.name)} rises from 0 to {rounded(switch.value, 2)}"
    ratio = switch.value / switch.now
    size = f"{rounded(abs(ratio - 1) * 100, 2)} %"
    if switch.name == SPEED:
        return f"it runs {size} {'slower' if ratio < 1 else 'faster'}"
    if ratio >= 2:
        return f"its {_input(switch.name)} is {rounded(ratio)} times as high"
    return f"its {_input(switch.name)} {'rises' if ratio > 1 else 'falls'} {size}"


def _answer_fields(answer: answers.CheapestAnswer) -> dict[str, Any]:
    odds = answer.odds
    shares = {machine.name: share for machine, share in odds.shares.items()}
    return fields_of(answer) | {
        "odds": {"wins": odds.wins, "regret": odds.regret, "shares": shares},
        "within": answer.demand.chances(answer.choice),
        "switch_points": answer.switch_points,
    }
