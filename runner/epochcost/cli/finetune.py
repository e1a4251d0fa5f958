"""`epochcost finetune`: what it costs to train a language model on given tokens, and where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Any, Literal

import typer

from epochcost.analysis.finetune import (
    SOFTWARE,
    FinetuneAnswer,
    TrainingDemand,
    TuningOffer,
    Way,
    by_hardware,
    finetune_answer,
    published_words,
)
from epochcost.analysis.finetune_memory import DEFAULT_RANK
from epochcost.analysis.odds import odds_sentence
from epochcost.cli.bundled import inputs_to_read
from epochcost.cli.cheapest import budget_of
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
from epochcost.cost import Candidate
from epochcost.errors import InputError
from epochcost.units import (
    count_words,
    memory,
    money,
    parse_count,
    parse_duration_seconds,
    seconds,
)

_HEADER = (
    "  machine", "plan", "time", "cost", "between", "memory", "at once", "how known", "region",
    "price of",
)  # fmt: skip
_DROP = ("region", "how known", "price of", "at once", "memory", "between")
_MOST_SHOWN = 10
_MOST_PUBLISHED = 3
_METHODS = {
    "lora": "LoRA fine-tuning",
    "qlora": "QLoRA fine-tuning",
    "full": "full fine-tuning",
    "pretraining": "pre-training",
}


def finetune(
    model: Annotated[str, typer.Option(help="A decoder's id.", autocompletion=ids("models"))],
    method: Annotated[
        Literal["lora", "qlora", "full", "pretraining"],
        typer.Option(help="Adapters, adapters on 4-bit weights, all weights, or from the start."),
    ] = "lora",
    examples: Annotated[int | None, typer.Option(min=1, help="Examples of the data.")] = None,
    tokens: Annotated[int, typer.Option(min=1, help="Tokens of an example or sequence.")] = 512,
    epochs: Annotated[int, typer.Option(min=1, help="Times that all examples are seen.")] = 1,
    tokens_total: Annotated[
        str | None, typer.Option(help="All tokens, instead of --examples: 10B.")
    ] = None,
    precision: Annotated[Literal["bf16", "fp8"], typer.Option(help="Of most products.")] = "bf16",
    rank: Annotated[int, typer.Option(min=1, help="Rank of adapters.")] = DEFAULT_RANK,
    machines: Annotated[int, typer.Option(min=1, help="Machines that share the work.")] = 1,
    deadline: Annotated[str | None, typer.Option(help="Time at most: 90m, 2h, 1h30m.")] = None,
    budget: Annotated[
        str | None, typer.Option(help="Cost at most: 5USD. Without --deadline: the fastest then.")
    ] = None,
    results: ResultsFolder = RESULTS,
    show_all: Annotated[
        bool, typer.Option("--all", help="All choices, and where it does not fit and why.")
    ] = False,
    wide: WideTable = False,
    form: ExactFigures = "text",
) -> None:
    """Show what fine-tuning or pre-training a language model costs.

    Example: epochcost finetune --model llama-3.1-8b --method lora --examples 10000 --tokens 512
      --epochs 3
    """
    demand = TrainingDemand(
        model,
        method,
        _total(examples, tokens, epochs, tokens_total),
        tokens,
        precision,
        rank,
        machines,
        None if deadline is None else parse_duration_seconds(deadline),
        *budget_of(budget),
    )
    answer = finetune_answer(inputs_to_read(results), demand)
    if form == "json":
        print_json(_as_json(answer))
    else:
        _show(answer, show_all=show_all, wide=wide)


def _total(examples: int | None, tokens: int, epochs: int, total: str | None) -> Decimal:
    """All tokens of the training; raises InputError unless they are given in one way."""
    if (examples is None) == (total is None):
        raise InputError("tokens: expected either --examples or --tokens-total, such as 10B")
    if total is not None:
        return parse_count(total, "tokens-total") * epochs
    return Decimal((examples or 0) * tokens * epochs)


def _show(answer: FinetuneAnswer, *, show_all: bool, wide: bool) -> None:
    demand, name = answer.demand, _METHODS[answer.demand.method]
    say(
        f"{name[0].upper()}{name[1:]} of {demand.model} on "
        f"{int(demand.total):,} tokens in sequences of {demand.length:,}, with {SOFTWARE} in "
        f"{demand.precision}, {'fastest' if demand.fastest else 'cheapest'} first\n"
    )
    met = [row for row in answer.offers if demand.met_by(row.seconds, row.cost.mean)]
    if demand.fastest:
        met.sort(key=lambda row: row.seconds)
    listed = answer.offers if show_all else by_hardware(met)[:_MOST_SHOWN]
    left_out = print_table(
        _HEADER, [_row(offer, answer) for offer in listed], drop=_DROP, wide=wide
    )
    rest = len(answer.offers) - len(listed)
    more = [f"{rest} more: --all"] if rest else []
    more += [f"{', '.join(left_out)}: --wide"] if left_out else []
    say(f"  … {'; '.join(more)}\n" if more else "")
    for line in filter(None, _lines(answer, show_all=show_all)):
        say(line)


def _row(candidate: Candidate[TuningOffer], answer: FinetuneAnswer) -> tuple[str, ...]:
    offer, cost = candidate.key, candidate.cost
    return (
        f"{'> ' if candidate is answer.choice else '  '}{offer.way.hardware.name}",
        offer.price.plan_words,
        seconds(float(candidate.seconds)),
        money(cost.mean, cost.currency),
        cost.between or "—",
        memory(offer.way.needed_bytes),
        offer.way.at_once,
        offer.mark,
        offer.price.region or "",
        offer.price.as_of.isoformat(),
    )


def _lines(answer: FinetuneAnswer, *, show_all: bool) -> Iterator[str]:
    choice, way = answer.choice, answer.choice.key.way
    cost, setting = choice.cost, way.setting
    best = "Fastest" if answer.demand.fastest else "Cheapest"
    low, mean, high = (
        f"{rate:,.0f}"
        for rate in (way.forecast.low, way.forecast.tokens_per_second, way.forecast.high)
    )
    yield (
        f"{best}: {way.hardware.name}, {choice.key.price.plan_words}: "
        f"{money(cost.mean, cost.currency)} in {seconds(float(choice.seconds))}, {mean} tokens a "
        f"second (likely {low} to {high})."
    )
    sure = cost.between or "one bill over its whole range of times"
    yield (
        f"How sure: {sure}; predicted from published trainings, not measured "
        "there; loading the model and data is not in it."
    )
    if not answer.demand.fastest:
        yield odds_sentence(answer.odds)
    devices = "its device" if setting.devices == 1 else f"each of {setting.devices} devices"
    yield (
        f"Memory of {devices}: {memory(way.needed_bytes)} of {memory(way.available_bytes)}, with "
        f"{count_words(setting.sequences, 'sequence')} at once:"
    )
    for part in answer.memory:
        yield f"  {part.name}: {memory(part.bytes)}: {part.how}"
    if answer.demand.machines > 1:
        yield "Machines are taken to exchange weights as fast as devices of one machine do."
    yield from _published(answer, way)
    counts = Counter(
        "too little memory" if machine.shortage else machine.reason for machine in answer.unfit
    )
    reasons = "; ".join(f"{number}: {reason}" for reason, number in counts.most_common())
    yield f"Cannot: {len(answer.unfit)} machines ({reasons})" + (
        "" if show_all else "; --all lists them"
    )
    if show_all:
        yield from (f"  {machine.hardware}: {machine.reason}" for machine in answer.unfit)


def _published(answer: FinetuneAnswer, way: Way) -> Iterator[str]:
    """Published trainings of the model on the devices of the choice, else on others."""
    same = [row for row in answer.published_on(way) if row.tokens_per_second]
    rows = same or [row for row in answer.published if row.tokens_per_second]
    if not rows:
        yield f"Published: no {_METHODS[answer.demand.method]} of this model."
    for row in rows[:_MOST_PUBLISHED]:
        yield f"Published: {published_words(row)}"
    if rows[_MOST_PUBLISHED:]:
        yield f"  … {len(rows) - _MOST_PUBLISHED} more published: --format json"


def _as_json(answer: FinetuneAnswer) -> dict[str, Any]:
    demand = answer.demand
    return {
        "model": demand.model,
        "method": demand.method,
        "tokens": demand.total,
        "sequence_tokens": demand.length,
        "precision": demand.precision,
        "software": SOFTWARE,
        "machines": demand.machines,
        "choice": answer.offers.index(answer.choice),
        "odds": {
            "wins": answer.odds.wins,
            "regret": answer.odds.regret,
            "machines": dict(answer.odds.shares),
        },
        "offers": [_offer(offer) for offer in answer.offers],
        "memory_of_choice": answer.memory,
        "cannot": answer.unfit,
        "published": [
            {
                "tokens_per_second": row.tokens_per_second,
                "memory_bytes": row.memory_bytes,
                "chip": row.chip,
                "count": row.count,
                "software": row.software,
                "precision": row.precision,
                "sequence_tokens": row.sequence,
                "source": row.file,
            }
            for row in answer.published
        ],
    }


def _offer(candidate: Candidate[TuningOffer]) -> dict[str, Any]:
    offer, way = candidate.key, candidate.key.way
    return {
        "hardware": way.hardware.id,
        "device": way.device.id,
        "price": offer.price.id,
        "evidence": offer.mark,
        "setting": way.setting,
        "needed_bytes_of_device": way.needed_bytes,
        "tokens_per_second": {
            "low": way.forecast.low,
            "mean": way.forecast.tokens_per_second,
            "high": way.forecast.high,
        },
        "elapsed_seconds": candidate.seconds,
        "seconds": way.time,
        "cost": offer.cost,
    }
