"""`epochcost finetune`: show what training a language model costs on each machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from typing import Annotated, Literal

import typer

from epochcost.analysis.finetune import (
    SOFTWARE,
    FinetuneAnswer,
    TrainingDemand,
    TuningMarket,
    TuningOffer,
    by_hardware,
)
from epochcost.analysis.finetune_memory import DEFAULT_RANK
from epochcost.analysis.odds import odds_sentence
from epochcost.cli import choices
from epochcost.cli.bundled import inputs_to_read
from epochcost.cli.terminal import ids, print_json, say, with_option_groups
from epochcost.cost.compare import Candidate
from epochcost.errors import UsageError
from epochcost.units import memory, money, parse_count, render_count, seconds

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
_WITH_ADAPTERS = ("lora", "qlora")


@with_option_groups
def finetune(
    *,
    model: Annotated[str, typer.Option(help="A decoder's id.", autocompletion=ids("models"))],
    method: Annotated[
        Literal["lora", "qlora", "full", "pretraining"],
        typer.Option(
            help="Train adapters, adapters on 4-bit weights, all weights, or from scratch."
        ),
    ] = "lora",
    examples: Annotated[int | None, typer.Option(min=1, help="Number of examples.")] = None,
    tokens: Annotated[int, typer.Option(min=1, help="Tokens in an example or sequence.")] = 512,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over all examples.")] = 1,
    tokens_total: Annotated[
        str | None,
        typer.Option(help="Number of tokens of an epoch, instead of --examples: 10B, 2T."),
    ] = None,
    precision: Annotated[
        Literal["bf16", "fp8"], typer.Option(help="Precision of most matrix products.")
    ] = "bf16",
    rank: Annotated[
        int | None, typer.Option(min=1, help=f"Rank of adapters. Default: {DEFAULT_RANK}.")
    ] = None,
    machines: Annotated[int, typer.Option(min=1, help="Machines that share the training.")] = 1,
    limiting: choices.LimitOptions,
    listing: choices.ListOptions,
) -> None:
    """Show what fine-tuning or pre-training a language model costs.

    Example: epochcost finetune --model llama-3.1-8b --method lora --examples 10000 --tokens 512
      --epochs 3
    """
    if rank is not None and method not in _WITH_ADAPTERS:
        raise UsageError(f"--rank: cannot be combined with --method {method}, without adapters")
    total = _total_tokens(examples, tokens, epochs, tokens_total)
    demand = TrainingDemand(
        model, method, total, tokens, precision, rank or DEFAULT_RANK, machines, limiting.limits
    )
    answer = TuningMarket(inputs_to_read(listing.results)).answer(demand)
    if listing.form == "json":
        print_json(answer)
    else:
        _show(answer, listing)


def _total_tokens(
    examples: int | None, example_tokens: int, epochs: int, epoch_tokens: str | None
) -> Decimal:
    if examples is not None and epoch_tokens is None:
        return Decimal(examples * example_tokens * epochs)
    if epoch_tokens is not None and examples is None:
        return parse_count(epoch_tokens, "tokens-total") * epochs
    raise UsageError("expected either --examples or --tokens-total, such as 10B")


def _show(answer: FinetuneAnswer, listing: choices.ListOptions) -> None:
    demand, limits = answer.demand, answer.demand.limits
    name, first = _METHODS[demand.method], "fastest" if limits.fastest else "cheapest"
    say(
        f"{name[0].upper()}{name[1:]} of {demand.model} on {int(demand.total):,} tokens in "
        f"sequences of {demand.length:,}, with {SOFTWARE} in {_render_precision(answer)}, "
        f"{first} first\n"
    )
    offers = answer.offers
    if limits.fastest:
        offers = tuple(sorted(offers, key=_fastest_first))
    met, beyond = limits.divided(offers)
    best = by_hardware(met)[:_MOST_SHOWN]
    row = partial(_row, answer.choice)
    choices.print_choices(_HEADER, met, best, row, listing, drop=_DROP, beyond=beyond)
    say("\n".join(filter(None, _choice_sentences(answer, first.capitalize()))))
    left_out = choices.left_out_lines(answer.refused, show_all=listing.show_all)
    say("\n".join((*_not_compared(answer), *left_out)))


def _render_precision(answer: FinetuneAnswer) -> str:
    stated = answer.demand.precision
    older = sorted({offer.key.way.precision for offer in answer.offers} - {stated})
    return f"{stated} ({older[0]} on older GPUs)" if older else stated


def _fastest_first(candidate: Candidate[TuningOffer]) -> tuple[bool, Decimal]:
    # Offers with a drawback come last, as in the answer.
    return bool(candidate.key.price.reservation), candidate.seconds


def _row(choice: Candidate[TuningOffer], candidate: Candidate[TuningOffer]) -> tuple[str, ...]:
    offer, cost, setting = candidate.key, candidate.cost, candidate.key.way.setting
    fitted = "checkpointed" * setting.checkpointing, "sharded" * setting.sharded
    return (
        f"{'> ' if candidate is choice else '  '}{offer.way.hardware.name}",
        offer.price.plan_text,
        seconds(float(candidate.seconds)),
        money(cost.mean, cost.currency),
        cost.between or "—",
        memory(offer.way.needed_bytes),
        ", ".join(filter(None, [str(setting.sequences), *fitted])),
        choices.how_known(offer.mark, offer.price),
        offer.price.region or "",
        offer.price.as_of.isoformat(),
    )


def _choice_sentences(answer: FinetuneAnswer, superlative: str) -> Iterator[str]:
    choice, way = answer.choice, answer.choice.key.way
    cost, setting, forecast = choice.cost, way.setting, way.forecast
    yield (
        f"{superlative}: {way.hardware.name}, {choice.key.price.plan_text}: {choice.figures}, "
        f"{1 / forecast.seconds:,.0f} tokens a second (likely {1 / forecast.high:,.0f} to "
        f"{1 / forecast.low:,.0f})."
    )
    yield (
        f"How sure: {cost.between or 'the whole range of times has one bill'}; predicted from "
        "published trainings, not measured there; without the time to load model and data."
    )
    if chip := answer.extrapolates(way):
        yield f"No published training ran on {chip}: its time is extrapolated from other chips."
    limits = answer.demand.limits
    if not limits.fastest and (sure := odds_sentence(answer.odds, among=limits.machines_text)):
        yield sure
    devices = "its device" if setting.count == 1 else f"each of {setting.count:,} devices"
    yield (
        f"Memory of {devices}: {memory(way.needed_bytes)} of {memory(way.available_bytes)}, with "
        f"{render_count(setting.sequences, 'sequence')} at once:"
    )
    for part in answer.memory:
        yield f"  {part.name}: {memory(part.bytes)}: {part.how}"
    if setting.network:
        yield f"Assumed: a network of {setting.network * 8e-9:,.0f} Gbit/s for each machine."
    yield from _published_training_lines(answer)


def _not_compared(answer: FinetuneAnswer) -> Iterator[str]:
    reasons = Counter(filter(None, (offer.key.price.reservation for offer in answer.offers)))
    if reasons and not answer.choice.key.price.reservation:
        why = "; ".join(f"{number}: {reason}" for reason, number in reasons.most_common())
        yield f"Not compared: {reasons.total()} ({why}); --all lists them last"


def _published_training_lines(answer: FinetuneAnswer) -> Iterator[str]:
    # Without a training on the devices of the choice, trainings on other devices are shown.
    rows = answer.published_on(answer.choice.key.way) or answer.published
    if not rows:
        yield f"Published: no {_METHODS[answer.demand.method]} of this model."
    for row in rows[:_MOST_PUBLISHED]:
        cells, run = row.line.cells, row.question
        length = f", sequences of {run.length:,}" if run.length else ""
        yield (
            f"Published: {row.tokens_per_second:,.0f} tokens a second on {run.count} "
            f"{run.device.name}, {cells['software']}, {run.precision}{length} ({cells['source']})"
        )
    if rows[_MOST_PUBLISHED:]:
        yield f"  … {len(rows) - _MOST_PUBLISHED} more published: --format json"
