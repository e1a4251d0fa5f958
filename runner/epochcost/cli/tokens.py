"""`epochcost tokens`: what a million tokens cost at one's own traffic, self-hosted or by an API."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import typer

from epochcost.analysis.phases import TimedDecoder, timed_decoders
from epochcost.analysis.served_tokens import ServedDecoder, served_decoders
from epochcost.analysis.tokens import (
    Requests,
    ServingOffer,
    api_per_million,
    best_capacity,
    break_even_per_second,
    capacities,
    serving_offers,
)
from epochcost.cli.bundled import catalogue_to_read, inputs_to_read
from epochcost.cli.served_tokens import served_as_json, show_served
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
from epochcost.cost import Estimate
from epochcost.errors import InputError
from epochcost.specs.api import ApiPrice
from epochcost.specs.catalogue import Catalogue
from epochcost.units import (
    money,
    money_range,
    parse_decimal,
    parse_duration_seconds,
    plain,
    seconds,
)

_HEADER = (
    "machine", "precision", "plan", "machines", "a million tokens", "between", "read", "written",
    "never idle", "at most", "a token", "sequences",
)  # fmt: skip
_DROP = ("sequences", "between", "a token", "never idle", "plan", "read", "written")
_PER_SECOND = {"s": 1, "min": 60, "h": 3600, "d": 86_400}


@dataclass(frozen=True, slots=True)
class _Answer:
    """What was asked of a model, and who can do it for how much."""

    model: str
    asked: Requests
    offers: tuple[ServingOffer, ...]
    apis: tuple[ApiPrice, ...]
    refused: tuple[str, ...]
    served: tuple[ServedDecoder, ...] = ()


def tokens(
    model: Annotated[str, typer.Option(help="A decoder's id.", autocompletion=ids("models"))],
    requests: Annotated[str, typer.Option(help="How many come: 0.5/s, 30/min, 2000/d.")],
    prompt: Annotated[int, typer.Option(min=1, help="Tokens of a prompt.")] = 256,
    output: Annotated[int, typer.Option(min=1, help="Tokens of an answer.")] = 128,
    ttft: Annotated[
        str | None, typer.Option(help="Time to the first token at most: 1s, 500ms.")
    ] = None,
    tpot: Annotated[
        str | None, typer.Option(help="Time from one token to the next at most: 100ms.")
    ] = None,
    results: ResultsFolder = RESULTS,
    wide: WideTable = False,
    form: ExactFigures = "text",
) -> None:
    """Show what a million tokens cost at your traffic.

    Example: epochcost tokens --model smollm2-135m --requests 0.5/s --prompt 200 --output 100
    """
    asked = Requests(_rate(requests), prompt, output, _bound(ttft, "ttft"), _bound(tpot, "tpot"))
    answer = _answer(catalogue_to_read(), model, asked, results)
    if form == "json":
        print_json(_as_json(answer))
    else:
        _show(answer, wide=wide)


def _rate(text: str) -> Decimal:
    """Requests a second; raises InputError where the text says none."""
    found = re.fullmatch(r"\s*([0-9.]+)\s*/\s*(s|min|h|d)\s*", text)
    rate = parse_decimal(found[1], "requests") / _PER_SECOND[found[2]] if found else Decimal(0)
    if rate <= 0:
        raise InputError(
            f"requests: expected a rate above 0, such as 0.5/s, 30/min or 2000/d, got {text!r:.80}"
        )
    return rate


def _bound(text: str | None, name: str) -> Decimal | None:
    if text is None:
        return None
    found = re.fullmatch(r"\s*([0-9.]+)\s*ms\s*", text)
    if found:
        return parse_decimal(found[1], name) / 1000
    return parse_duration_seconds(text)


def _answer(catalogue: Catalogue, name: str, asked: Requests, results: Path) -> _Answer:
    model = catalogue.model(name)
    if model.decoder is None:
        decoders = ", ".join(one.id for one in catalogue.models.values() if one.decoder)
        raise InputError(
            f"--model {name}: expected a model that generates tokens, with a table [decoder]: "
            f"{decoders or 'there is none'}"
        )
    if asked.tokens > model.decoder.context:
        raise InputError(
            f"--prompt {asked.prompt} --output {asked.output}: expected at most "
            f"{model.decoder.context} tokens together, the context of {name}"
        )
    inputs = inputs_to_read(results, catalogue)
    timed = [one for one in timed_decoders(inputs) if one.model == name]
    served = tuple(one for one in served_decoders(inputs) if one.model == name)
    apis = [one for one in catalogue.apis.values() if one.model == name]
    if not timed and not apis and not served:
        raise InputError(
            f"{name}: expected times of its phases, found none in {results}: measure them with "
            f"`epochcost run --model {name}`"
        )
    return _Answer(
        name,
        asked,
        serving_offers(catalogue, timed, asked),
        tuple(sorted(apis, key=lambda one: api_per_million(one, asked))),
        tuple(dict.fromkeys(reason for one in timed if (reason := _refusal(one, asked)))),
        served,
    )


def _refusal(decoder: TimedDecoder, asked: Requests) -> str | None:
    """Why a machine is no answer; None where it is one."""
    where = f"{decoder.machine.name}, {decoder.precision}"
    found = list(capacities(decoder, asked))
    if not found:
        timed = "; ".join(
            f"{name} of {low} to {high} tokens" for name, (low, high) in decoder.lengths.items()
        )
        middle = asked.prompt + asked.output // 2
        return (
            f"{where}: no time of a prompt of {asked.prompt} and tokens after {middle}, the middle "
            f"of the answer; timed are {timed}"
        )
    if best_capacity(decoder, asked) is None:
        first = seconds(float(min(one.first.mean for one in found)))
        token = seconds(float(min(one.token.mean for one in found)))
        return f"{where}: its first token takes {first} and each more {token} at best"
    return None


def _show(answer: _Answer, *, wide: bool) -> None:
    asked = answer.asked
    say(
        f"{answer.model}, {plain(asked.per_second.normalize())} requests a second, each "
        f"{asked.prompt:,} tokens read and {asked.output:,} written"
    )
    if answer.offers:
        print_table(_HEADER, [_row(one) for one in answer.offers], drop=_DROP, wide=wide)
    for line in _lines(answer):
        say(line)
    show_served(answer.served, asked.per_second, wide=wide)


def _row(offer: ServingOffer) -> tuple[str, ...]:
    capacity = offer.capacity
    return (
        offer.decoder.machine.name,
        offer.decoder.precision,
        f"{offer.price.plan_words}{', assumed' if offer.price.assumed else ''}",
        str(offer.machines),
        _amount(offer.per_million),
        _between(offer.per_million),
        _amount(offer.apart.input),
        _amount(offer.apart.output),
        _amount(offer.full),
        f"{float(capacity.per_second):.3g}/s",
        seconds(float(capacity.token.mean)),
        str(capacity.sequences),
    )


def _amount(cost: Estimate) -> str:
    return money(cost.mean, cost.currency)


def _between(cost: Estimate) -> str:
    return money_range(cost.low, cost.high, cost.currency)


def _lines(answer: _Answer) -> Iterator[str]:
    asked = answer.asked
    for reason in answer.refused:
        yield f"left out: {reason}"
    for api in answer.apis:
        prices = api_per_million(api, asked), api.input_per_million, api.output_per_million
        cost, read, written = (money(one, api.currency) for one in prices)
        ended = f", ended {api.valid_until}" if api.valid_until else ""
        apart = f"{read} read and {written} written"
        since = f"prices of {api.as_of}{ended}"
        yield f"API: {api.provider}, {api.name}: {cost} a million, {apart}, {since}"
        for offer in answer.offers[:1]:
            yield f"  {_break_even_words(offer, api, asked)}"
    if not answer.apis:
        yield "API: no price of this model is in specs/apis"
    if answer.offers:
        yield (
            "From the phases that were timed: requests that come at once wait for each other, "
            "which is not in these figures."
        )


def _break_even_words(offer: ServingOffer, api: ApiPrice, asked: Requests) -> str:
    machine = offer.decoder.machine.name
    rate = break_even_per_second(offer, api, asked)
    if rate is None:
        return f"cheaper than {machine} at any rate that one of it does"
    return f"cheaper than one {machine} below {float(rate):.3g} requests a second"


def _as_json(answer: _Answer) -> dict[str, Any]:
    asked = answer.asked
    return {
        "model": answer.model,
        "requests_per_second": asked.per_second,
        "prompt_tokens": asked.prompt,
        "output_tokens": asked.output,
        "machines": [_offer_as_json(one, answer.apis, asked) for one in answer.offers],
        "apis": [
            {
                "api": one.id,
                "provider": one.provider,
                "per_million_tokens": api_per_million(one, asked),
                "per_million_input_tokens": one.input_per_million,
                "per_million_output_tokens": one.output_per_million,
                "currency": one.currency,
                "as_of": one.as_of.isoformat(),
                "valid_until": one.valid_until and one.valid_until.isoformat(),
            }
            for one in answer.apis
        ],
        "left_out": list(answer.refused),
        "behind_an_engine": [served_as_json(one) for one in answer.served],
    }


def _offer_as_json(
    offer: ServingOffer, apis: Sequence[ApiPrice], asked: Requests
) -> dict[str, Any]:
    capacity = offer.capacity
    return {
        "hardware": offer.decoder.machine.hardware,
        "price": offer.price.id,
        "precision": offer.decoder.precision,
        "evidence": offer.mark,
        "machines": offer.machines,
        "sequences": capacity.sequences,
        "requests_per_second_at_most": capacity.per_second,
        "first_token_seconds": capacity.first.mean,
        "token_seconds": capacity.token.mean,
        "per_million_tokens": _cost_as_json(offer.per_million),
        "per_million_input_tokens": _cost_as_json(offer.apart.input),
        "per_million_output_tokens": _cost_as_json(offer.apart.output),
        "per_million_tokens_never_idle": _cost_as_json(offer.full),
        "per_million_input_tokens_never_idle": _cost_as_json(offer.full_apart.input),
        "per_million_output_tokens_never_idle": _cost_as_json(offer.full_apart.output),
        "cheaper_than_api_from_requests_per_second": {
            api.id: break_even_per_second(offer, api, asked) for api in apis
        },
    }


def _cost_as_json(cost: Estimate) -> dict[str, Any]:
    return {"low": cost.low, "mean": cost.mean, "high": cost.high, "currency": cost.currency}
