"""`epochcost tokens`: show what a million tokens cost at your traffic, self-hosted or by API."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Annotated, Any

import typer

from epochcost import units
from epochcost.analysis.odds import odds_sentence
from epochcost.analysis.serving import ServedDecoder, ServedRate
from epochcost.analysis.token_answers import (
    Software,
    TokenAnswer,
    TokenMarket,
    Way,
    in_order,
    name_of,
)
from epochcost.analysis.tokens import MOST_BUSY, ApiOffer, Requests, ServingOffer
from epochcost.cli.bundled import inputs_to_read
from epochcost.cli.choices import ListOptions, how_known, left_out_lines, print_choices
from epochcost.cli.outcomes import render_token_bound
from epochcost.cli.results import show_reported
from epochcost.cli.terminal import fields_of, ids, print_json, print_table, say, with_option_groups
from epochcost.errors import InputError
from epochcost.report.wording import render_cost
from epochcost.specs.decoder import ServedPrecision

_HEADER = (
    "machine or API", "a million", "likely", "cheapest", "number", "busy", "with", "how known",
    "plan", "full load", "at most", "first token", "a token", "sequences", "devices",
)  # fmt: skip
_DROP = (
    "devices", "sequences", "full load", "at most", "first token", "a token", "plan", "likely",
    "number",
)  # fmt: skip
_RATES = (
    "requests", "first token", "90 % below", "further, 90 % below", "in time", "written",
    "a million tokens", "measured for",
)  # fmt: skip
_DROPPED_RATES = ("measured for", "written", "first token", "in time")
_MOST_SHOWN = 15
_PER_SECOND = {"s": 1, "min": 60, "h": 3600, "d": 86_400}


@with_option_groups
def tokens(
    *,
    model: Annotated[str, typer.Option(help="A decoder's id.", autocompletion=ids("models"))],
    requests: Annotated[str, typer.Option(help="Rate of requests: 0.5/s, 30/min, 2000/d.")],
    prompt: Annotated[int, typer.Option(min=1, help="Tokens of a prompt.")] = 256,
    output: Annotated[int, typer.Option(min=1, help="Tokens of an answer.")] = 128,
    ttft: Annotated[
        str | None, typer.Option(help="Longest time to the first token: 1s, 500ms.")
    ] = None,
    tpot: Annotated[
        str | None, typer.Option(help="Longest time between two tokens: 100ms.")
    ] = None,
    cached: Annotated[
        str, typer.Option(help="Share of a prompt cached from earlier requests: 60%.")
    ] = "0%",
    cache_write: Annotated[
        str, typer.Option(help="Share of a prompt that an API caches for later prompts: 10%.")
    ] = "0%",
    batch: Annotated[
        bool,
        typer.Option("--batch", help="Answers may take a day, so that APIs' batch prices apply."),
    ] = False,
    precision: Annotated[
        ServedPrecision | None,
        typer.Option(help="Precision of the weights. Default: that of the published weights."),
    ] = None,
    software: Annotated[
        Software | None,
        typer.Option(
            help="The serving software. Default: vLLM, or llama.cpp where vLLM does not run."
        ),
    ] = None,
    devices: Annotated[
        int | None, typer.Option(min=1, help="Largest number of accelerators in a machine.")
    ] = None,
    listing: ListOptions,
) -> None:
    """Show what a million tokens cost at your traffic.

    The command compares machines, rented or owned, with APIs.

    Example: epochcost tokens --model smollm2-135m --requests 2/s --prompt 200 --output 100
    """
    bounds = _bound(ttft, "ttft"), _bound(tpot, "tpot")
    shares = _parse_prompt_share(cached, "cached"), _parse_prompt_share(cache_write, "cache-write")
    if sum(shares) > 1:
        raise InputError(
            "cache-write: expected at most the share that is not cached, "
            f"{units.share(1 - shares[0])}, got {cache_write!r:.80}"
        )
    traffic = Requests(_requests_per_second(requests), prompt, output, *bounds, *shares, batch)
    market = TokenMarket(inputs_to_read(listing.results))
    answer = market.answer(model, traffic, precision, software, devices)
    if listing.form == "json":
        print_json(_answer_fields(answer))
    else:
        _show(answer, listing)


def _answer_fields(answer: TokenAnswer) -> dict[str, Any]:
    turn = answer.turn
    return fields_of(answer) | {
        "offers": [*map(_offer_fields, answer.offers)],
        "apis": [*map(_offer_fields, answer.apis)],
        "odds": answer.odds,
        "self_hosting_wins": turn and (turn[0], _offer_fields(turn[1])),
    }


def _offer_fields(offer: Way) -> dict[str, Any]:
    return fields_of(offer) | {"currency": offer.price.currency}


def _parse_prompt_share(text: str, option: str) -> Decimal:
    part = units.parse_share(text, option)
    # A whole number may mean a percentage.
    if not 0 <= part <= 1 or (part == 1 and "%" not in text):
        raise InputError(
            f"{option}: expected a percentage up to 100%, or a share below 1, got {text!r:.80}"
        )
    return part


def _requests_per_second(text: str) -> Decimal:
    match = re.fullmatch(r"\s*([0-9.]+)\s*/\s*(s|min|h|d)\s*", text)
    rate = (
        units.parse_decimal(match[1], "requests") / _PER_SECOND[match[2]] if match else Decimal(0)
    )
    if rate <= 0:
        raise InputError(
            f"requests: expected a rate above 0, such as 0.5/s, 30/min or 2000/d, got {text!r:.80}"
        )
    return rate


def _bound(text: str | None, name: str) -> Decimal | None:
    if text is None:
        return None
    if re.fullmatch(r"[\s0-9.]+", text):
        raise InputError(
            f"{name}: expected a time with its unit, such as 500ms or 1s, got {text!r}"
        )
    return units.parse_duration_seconds(text, name)


def _show(answer: TokenAnswer, listing: ListOptions) -> None:
    say("\n".join(_answer_sentences(answer)))
    every = in_order((*answer.offers, *answer.apis))
    if every:
        say()
        best = _cheapest_and_measured(answer)
        print_choices(_HEADER, every, best, partial(_row, answer), listing, drop=_DROP)
    for line in left_out_lines(answer.refused, show_all=listing.show_all):
        say(line)
    for (software, load), group in groupby(answer.served, attrgetter("software", "requests")):
        say(f"Behind {software}, measured with {load.lengths_text}, each rate once:")
        for served in group:
            say(f"{served.machine.name}, {served.precision}: {_served_decoder_summary(served)}")
            if served.rates:
                rows = [_rate_row(served, rate) for rate in served.rates]
                print_table(_RATES, rows, drop=_DROPPED_RATES, wide=listing.wide)
    if answer.reported:
        say("Reported by you:")
        show_reported(answer.reported, wide=listing.wide)


def _cheapest_and_measured(answer: TokenAnswer) -> tuple[Way, ...]:
    unreserved = [way for way in answer.ways if not way.price.reservation] or answer.ways
    cheapest = unreserved[:_MOST_SHOWN]
    machines = [way for way in answer.machines if way.deployment.kind == "measured"]
    return (*cheapest, *(way for way in machines if way not in cheapest))


def _answer_sentences(answer: TokenAnswer) -> Iterator[str]:
    traffic, machine, api = answer.requests, answer.cheapest_machine, answer.cheapest_api
    shares = {"cached": traffic.cached_share, "written to the cache": traffic.written_share}
    parts = ", ".join(f"{units.share(part)} {name}" for name, part in shares.items() if part)
    cached = f" ({parts})" if parts else ""
    stated = any(offer.api.batch_percent for offer in answer.apis)
    batch = f", in batches{'' if stated else ' (no API states a batch price)'}" * traffic.batch
    weights = answer.precision_text
    published = f" in {weights}" if weights != answer.precision else ""
    yield (
        f"{answer.model}{published}, {_per_second(traffic.per_second)}, "
        f"each {traffic.prompt:,} tokens read{cached} and {traffic.output:,} written{batch}"
    )
    best = next(iter(answer.ways), None)
    if isinstance(best, ServingOffer):
        yield f"Self-host on {_render_machine_offer(best)}."
    elif best is not None:
        yield f"Take an API: {_asks(best)}."
    if answer.odds and (sure := odds_sentence(answer.odds, among="machines and APIs")):
        yield sure
    if best is not machine and machine is not None:
        yield f"The cheapest machine: {_render_machine_offer(machine)}."
    if api is None:
        yield "No API has a price for this model that is current and in the same currency."
        return
    if best is not api:
        yield f"The cheapest API: {_asks(api)}."
    if traffic.first_seconds or traffic.token_seconds:
        yield "The bounds apply to machines: no price list states how fast an API answers."
    yield from _break_even_load_sentences(answer)


def _break_even_load_sentences(answer: TokenAnswer) -> Iterator[str]:
    for turn in answer.turns:
        busiest = turn.busiest
        ends = f" ({busiest.between})" if busiest.between else ""
        yield (
            f"From {_per_second(turn.per_second)} for each machine, {name_of(turn.offer)} "
            f"{turn.comparison} that API: {render_cost(busiest)} a million tokens{ends} if "
            f"{units.share(MOST_BUSY)} busy."
        )
    if answer.machines and not answer.turns:
        yield "At no load is a machine cheaper than that API."


def _asks(offer: ApiOffer) -> str:
    cost = units.money(offer.per_million, offer.api.currency)
    reservation = f" ({offer.price.reservation})" if offer.price.reservation else ""
    return f"{name_of(offer)}, asks {cost} a million tokens{reservation}"


def _render_machine_offer(offer: ServingOffer) -> str:
    cost = offer.per_million
    same = cost.low == cost.high
    likely = "the same at any likely speed" if same else f"likely {_cost_range(offer)}"
    number = f"{offer.machines:,} machines" if offer.machines > 1 else "one machine"
    owned = "; billed as in use all the time, at full power" if offer.price.owned else ""
    return (
        f"{name_of(offer)} with {_software(offer)}: {render_cost(cost)} a million tokens, {likely} "
        f"({how_known(offer.mark, offer.price)}; {number}, {offer.load_text}, of at most "
        f"{_per_second(offer.capacity.per_second)} each{owned})"
    )


def _per_second(rate: Decimal) -> str:
    number = units.rounded(rate)
    return f"{number} request{'' if number == '1' else 's'} a second"


def _cost_range(offer: ServingOffer) -> str:
    return units.money_range(offer.per_million.low, offer.per_million.high, offer.price.currency)


def _software(offer: ServingOffer) -> str:
    return f"{offer.deployment.software}, {offer.deployment.precision}"


def _row(answer: TokenAnswer, way: Way) -> tuple[str, ...]:
    chance = units.share(answer.chance(way))
    if isinstance(way, ApiOffer):
        cost, plan = units.money(way.per_million, way.api.currency), f"prices of {way.api.as_of}"
        evidence = way.price.reservation or "list price"
        return (name_of(way), cost, "", chance, "", "", "API", evidence, plan, *[""] * 6)
    capacity, deployment, request = way.capacity, way.deployment, way.capacity.request
    copies = f"{deployment.copies} x " if deployment.copies > 1 else ""
    return (
        name_of(way),
        render_cost(way.per_million),
        _cost_range(way),
        chance,
        f"{way.machines:,}",
        units.share(way.busy),
        _software(way),
        how_known(way.mark, way.price),
        way.price.plan_text,
        render_cost(way.full),
        " to ".join(f"{units.rounded(1 / end)}" for end in (request.high, request.low)) + "/s",
        units.seconds(float(capacity.first.mean)),
        units.seconds(float(capacity.token.mean)),
        f"{copies}{capacity.sequences}",
        f"{copies}{deployment.tensor_parallel}",
    )


def _rate_row(served: ServedDecoder, rate: ServedRate) -> tuple[str, ...]:
    times = (rate.first_seconds(50), rate.first_seconds(90), rate.further_seconds(90))
    return (
        f"{units.rounded(rate.per_second)}/s",
        *("-" if time is None else units.seconds(time) for time in times),
        "-" if rate.good_share is None else units.share(rate.good_share),
        f"{units.rounded(rate.written_per_second)}/s",
        render_cost(served.per_million(rate)),
        units.seconds(rate.seconds),
    )


def _served_decoder_summary(served: ServedDecoder) -> str:
    highest = served.highest
    rate = f"one machine keeps {{}} up to {units.rounded(highest.per_second)}/s" if highest else ""
    parts = [(rate or "no rate keeps {}").format(render_token_bound(served.requests))]
    if served.start_seconds is not None:
        parts.append(
            f"the engine accepts requests {units.seconds(served.start_seconds)} after its start"
        )
    if served.joules_per_token is not None:
        parts.append(f"{units.rounded(served.joules_per_token)} J a token by {served.meters}")
    return "; ".join(parts)
