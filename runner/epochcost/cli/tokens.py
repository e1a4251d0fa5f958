"""`epochcost tokens`: what a million tokens cost at one's own traffic, self-hosted or by an API."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import groupby
from operator import attrgetter
from typing import Annotated, Any

import typer

from epochcost.analysis.answers import TokenAnswer, token_answer
from epochcost.analysis.serving import PERCENTILES, ServedDecoder, ServedRate
from epochcost.analysis.tokens import Requests, ServingOffer, api_per_million, break_even_per_second
from epochcost.cli.bundled import inputs_to_read
from epochcost.cli.results import reported_as_json, show_reported
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
from epochcost.cost import Cost, Estimate
from epochcost.errors import InputError
from epochcost.specs.price import ApiPrice
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
_RATES = (
    "requests", "first token", "90 % below", "further, 90 % below", "in time", "written",
    "a million tokens", "measured for",
)  # fmt: skip
_DROPPED_RATES = ("measured for", "written", "first token", "in time")
_PER_SECOND = {"s": 1, "min": 60, "h": 3600, "d": 86_400}


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
    traffic = Requests(_rate(requests), prompt, output, _bound(ttft, "ttft"), _bound(tpot, "tpot"))
    answer = token_answer(inputs_to_read(results), model, traffic)
    if form == "json":
        print_json(_as_json(answer))
    else:
        _show(answer, wide=wide)


def _rate(text: str) -> Decimal:
    """Requests a second; raises InputError where the text says none."""
    match = re.fullmatch(r"\s*([0-9.]+)\s*/\s*(s|min|h|d)\s*", text)
    rate = parse_decimal(match[1], "requests") / _PER_SECOND[match[2]] if match else Decimal(0)
    if rate <= 0:
        raise InputError(
            f"requests: expected a rate above 0, such as 0.5/s, 30/min or 2000/d, got {text!r:.80}"
        )
    return rate


def _bound(text: str | None, name: str) -> Decimal | None:
    if text is None:
        return None
    match = re.fullmatch(r"\s*([0-9.]+)\s*ms\s*", text)
    if match:
        return parse_decimal(match[1], name) / 1000
    return parse_duration_seconds(text)


def _show(answer: TokenAnswer, *, wide: bool) -> None:
    traffic = answer.requests
    say(
        f"{answer.model}, {plain(traffic.per_second.normalize())} requests a second, each "
        f"{traffic.prompt:,} tokens read and {traffic.output:,} written"
    )
    if answer.offers:
        print_table(_HEADER, [_row(offer) for offer in answer.offers], drop=_DROP, wide=wide)
    for line in _lines(answer):
        say(line)
    for (software, load), group in groupby(answer.served, attrgetter("software", "requests")):
        say(f"Behind {software}, measured with {load.lengths_words}:")
        for served in group:
            expected = "; ".join(_expected(served, traffic.per_second))
            say(f"{served.machine.name}, {served.precision}: {expected}")
            if served.rates:
                rows = [_rate_row(served, rate) for rate in served.rates]
                print_table(_RATES, rows, drop=_DROPPED_RATES, wide=wide)
    if answer.reported:
        say("Reported by you:")
        show_reported(answer.reported, wide=wide)


def _row(offer: ServingOffer) -> tuple[str, ...]:
    capacity = offer.capacity
    return (
        offer.decoder.machine.name,
        offer.decoder.precision,
        f"{offer.price.plan_words}{', assumed' if offer.price.assumed else ''}",
        str(offer.machines),
        _amount(offer.per_million),
        money_range(offer.per_million.low, offer.per_million.high, offer.price.currency),
        _amount(offer.by_kind.input),
        _amount(offer.by_kind.output),
        _amount(offer.full),
        f"{float(capacity.per_second):.3g}/s",
        seconds(float(capacity.token.mean)),
        str(capacity.sequences),
    )


def _amount(cost: Cost) -> str:
    return money(cost.mean, cost.currency) if isinstance(cost, Estimate) else "no price"


def _lines(answer: TokenAnswer) -> Iterator[str]:
    traffic = answer.requests
    for reason in answer.refused:
        yield f"left out: {reason}"
    for api in answer.apis:
        prices = api_per_million(api, traffic), api.input_per_million, api.output_per_million
        cost, read, written = (money(price, api.currency) for price in prices)
        ended = f", ended {api.valid_until}" if api.valid_until else ""
        rates = f"{read} read and {written} written"
        since = f"prices of {api.as_of}{ended}"
        yield f"API: {api.provider}, {api.name}: {cost} a million, {rates}, {since}"
        for offer in answer.offers[:1]:
            machine = offer.decoder.machine.name
            rate = break_even_per_second(offer, api, traffic)
            if rate is None:
                yield f"  cheaper than {machine} at any rate that one of it does"
            else:
                yield f"  cheaper than one {machine} below {float(rate):.3g} requests a second"
    if not answer.apis:
        yield "API: no price of this model is in specs/apis"
    if answer.offers:
        yield (
            "From the phases that were timed: requests that come at once wait for each other, "
            "which is not in these figures."
        )


def _rate_row(served: ServedDecoder, rate: ServedRate) -> tuple[str, ...]:
    times = (rate.first_seconds(50), rate.first_seconds(90), rate.further_seconds(90))
    return (
        f"{float(rate.per_second):.3g}/s",
        *("-" if time is None else seconds(time) for time in times),
        "-" if rate.good_share is None else f"{rate.good_share:.0%}",
        f"{rate.written_per_second:.3g}/s",
        _amount(served.per_million(rate)),
        seconds(rate.seconds),
    )


def _expected(served: ServedDecoder, per_second: Decimal) -> Iterator[str]:
    """Sentences on a machine at a rate, by the measurements below and above it."""
    load = served.requests
    bounds = (seconds(bound / 1e3) for bound in (load.first_token_ms, load.token_ms))
    bound = "{} % of first tokens within {} and further ones within {}".format(
        load.percentile, *bounds
    )
    first = served.first_seconds(per_second, load.percentile)
    further = served.further_seconds(per_second, load.percentile)
    if served.highest is None:
        yield f"no rate keeps {bound}"
    else:
        yield f"one machine keeps {bound} up to {float(served.highest.per_second):.3g}/s"
        if first is not None and further is not None:
            yield (
                f"at {float(per_second):.3g}/s {load.percentile} % of first tokens come within "
                f"{seconds(first)} and of further ones within {seconds(further)}"
            )
    if served.start_seconds is not None:
        yield f"the engine takes requests {seconds(served.start_seconds)} after its start"
    if served.joules_per_token is not None:
        yield f"{served.joules_per_token:.3g} J a token by {served.meters}"


def _as_json(answer: TokenAnswer) -> dict[str, Any]:
    traffic = answer.requests
    return {
        "model": answer.model,
        "requests_per_second": traffic.per_second,
        "prompt_tokens": traffic.prompt,
        "output_tokens": traffic.output,
        "machines": [_offer(offer, answer.apis, traffic) for offer in answer.offers],
        "apis": [
            {"per_million_tokens": api_per_million(api, traffic)} | api.model_dump(mode="json")
            for api in answer.apis
        ],
        "left_out": answer.refused,
        "behind_an_engine": [_served(served) for served in answer.served],
        "reported_by_you": [reported_as_json(row) for row in answer.reported],
    }


def _offer(offer: ServingOffer, apis: Sequence[ApiPrice], traffic: Requests) -> dict[str, Any]:
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
        "per_million_tokens": offer.per_million,
        "per_million_input_tokens": offer.by_kind.input,
        "per_million_output_tokens": offer.by_kind.output,
        "per_million_tokens_never_idle": offer.full,
        "per_million_input_tokens_never_idle": offer.full_by_kind.input,
        "per_million_output_tokens_never_idle": offer.full_by_kind.output,
        "cheaper_than_api_from_requests_per_second": {
            api.id: break_even_per_second(offer, api, traffic) for api in apis
        },
    }


def _served(served: ServedDecoder) -> dict[str, Any]:
    """A decoder behind an engine on a machine, with every rate."""
    return {
        "hardware": served.machine.hardware,
        "precision": served.precision,
        "engine": served.software,
        "requests": served.requests,
        "start_seconds": served.start_seconds,
        "joules_per_token": served.joules_per_token,
        "meters": served.meters or None,
        "rates": [
            {
                "requests_per_second": rate.per_second,
                "requests": rate.requests,
                "first_token_seconds": {f"p{at}": rate.first_seconds(at) for at in PERCENTILES},
                "further_token_seconds": {f"p{at}": rate.further_seconds(at) for at in PERCENTILES},
                "share_in_time": rate.good_share,
                "tokens_read_per_second": rate.tokens.read / rate.seconds,
                "tokens_written_per_second": rate.written_per_second,
                "per_million_tokens": served.per_million(rate),
            }
            for rate in served.rates
        ],
        "evidence": served.evidence.uri,
    }
