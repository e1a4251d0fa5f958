"""The pages of decoders: tokens, their cost, APIs beside it, and phases as they were timed.

For other traffic than the page's own the browser (`tokens.js`) evaluates what is published here as
a script: the formulas of `analysis.tokens`, traced for each number of sequences, prices of an hour
and of APIs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from epochcost.analysis.observations import Workload
from epochcost.analysis.phases import TimedDecoder, ends_of, seconds_at
from epochcost.analysis.reported import ReportedRow, reported_rows
from epochcost.analysis.roofline import DecodedStep, decoded_steps
from epochcost.analysis.serving import ServedDecoder
from epochcost.analysis.tokens import (
    USUAL,
    Requests,
    ServingOffer,
    api_per_million,
    break_even_rate,
    busy_per_million,
    hour_of,
    machines_for,
    middle_of,
    rented_per_million,
    serving_offers,
    token_seconds,
    written_seconds,
)
from epochcost.cost import Time
from epochcost.cost.money import exact_arithmetic
from epochcost.cost.program import answers_program
from epochcost.cost.tracing import symbol, where
from epochcost.plan.work import ENGINE_SEQUENCES
from epochcost.report.charts.tokens import cost_by_rate, pace_chart, waiting_chart
from epochcost.report.escape import one_line
from epochcost.report.pages.model import AboutModel, ModelView
from epochcost.report.pages.page import Page, Report, stem, workload_uri
from epochcost.specs.catalogue import current_prices
from epochcost.specs.decoder import Decoder
from epochcost.specs.model import Model
from epochcost.specs.price import MILLION, ApiPrice

_FOLDER = "data/calculator/tokens"
Json = dict[str, Any]
_PROMPT, _OUTPUT, _RATE, _HOUR = map(symbol, ("prompt", "output", "rate", "hour"))


@dataclass(frozen=True, slots=True)
class ApiOffer:
    """The price of an API for a million tokens of the page's requests."""

    api: ApiPrice
    per_million: Decimal


@dataclass(frozen=True)
class DecoderView(ModelView):
    """A decoder's page, for requests of the usual length.

    ``memory`` is the least that memory takes of decoding, by the address of a phase's evidence;
    ``script`` is the address of what the browser computes from, ``sequences`` the most requests
    that the engine takes together, ``shortest`` the seconds of the shortest run behind it.
    """

    decoder: Decoder
    request: Requests
    timed: Sequence[TimedDecoder]
    memory: Mapping[str, DecodedStep]
    offers: Sequence[ServingOffer]
    apis: Sequence[ApiOffer]
    script: str
    sequences: int
    served: Sequence[ServedDecoder]
    shortest: float
    reported: Sequence[ReportedRow]


def page(report: Report, about: AboutModel, model: Model, decoder: Decoder) -> Page:
    """The page of a decoder."""
    timed = report.trials.decoders.get(model.id, ())
    served = report.trials.served_decoders.get(model.id, ())
    apis, offers = _apis(report, model), serving_offers(report.catalogue, timed, USUAL)
    api_offers = [ApiOffer(api, api_per_million(api, USUAL)) for api in apis]
    name = stem(about.workload)
    view = DecoderView(
        about=about,
        decoder=decoder,
        request=USUAL,
        timed=timed,
        memory={
            step.timed.evidence.uri: step
            for decoder_timed in timed
            for step in decoded_steps(report.inputs, decoder_timed)
        },
        offers=offers,
        apis=sorted(api_offers, key=lambda offer: offer.per_million),
        script=f"{_FOLDER}/{model.id}.js",
        sequences=ENGINE_SEQUENCES,
        served=served,
        shortest=min((rate.seconds for decoded in served for rate in decoded.rates), default=0.0),
        reported=reported_rows(report.inputs, model.id),
    )
    return Page(
        uri=workload_uri(about.workload),
        title=model.name,
        template="decoder.md.jinja",
        description=f"What {model.name} costs to train and to serve, by machine and price plan.",
        context=view,
        figures={
            "traffic": cost_by_rate(offers, apis, USUAL, identifier=f"{name}-traffic"),
            "pace": pace_chart(timed, USUAL, identifier=f"{name}-pace"),
            "waiting": waiting_chart(served, identifier=f"{name}-waiting"),
        },
    )


def _apis(report: Report, model: Model) -> list[ApiPrice]:
    """The APIs that serve a model of the same shape."""
    return [api for api in report.catalogue.apis.values() if api.model == model.id]


def cheapest_tokens(report: Report, workload: Workload) -> list[ServingOffer]:
    """Offers of a timed decoder, cheapest first on machines that are never idle."""
    timed = report.trials.decoders.get(workload.id, ()) if workload.is_model else ()
    offers = serving_offers(report.catalogue, timed, USUAL)
    return sorted(offers, key=lambda offer: (bool(offer.price.reservation), offer.full.mean))


def token_files(report: Report) -> Iterator[tuple[str, str]]:
    """A script for each decoder that was timed, by address: a page on a disk can fetch nothing."""
    for name, timed in report.trials.decoders.items():
        published = {
            "decoders": [_decoder(report, decoder) for decoder in timed],
            "apis": [_api(api) for api in _apis(report, report.catalogue.models[name])],
        }
        data = json.dumps(published, separators=(",", ":"), allow_nan=False)
        yield f"{_FOLDER}/{name}.js", f'window["epochcost-tokens/{name}"]={data};\n'


def _decoder(report: Report, timed: TimedDecoder) -> Json:
    machine = timed.machine
    prices = current_prices(report.catalogue.prices_of(machine.hardware))
    priced = [(price, hour) for price in prices if (hour := hour_of(machine, price)) is not None]
    return {
        "machine": machine.hardware,
        "name": one_line(machine.name),
        "precision": timed.precision,
        "capacities": [
            {"sequences": number, "program": _capacity(timed, number)} for number in timed.sequences
        ],
        "plans": [
            {
                "name": one_line(f"{price.provider} {price.plan_words}"),
                "as_of": str(price.as_of),
                "assumed": price.assumed,
                "reserved": bool(price.reservation),
                "currency": price.currency,
                "hour": float(hour),
            }
            for price, hour in priced
        ],
    }


def _capacity(timed: TimedDecoder, sequences: int) -> Any:
    """Formulas of times and costs by the lengths and the rate of requests, and an hour's price.

    ``timed`` is 1 for lengths between those that were timed, else 0.
    """
    prefills, decodes = timed.steps("prefill", 1), timed.steps("decode", sequences)
    middle, tokens = middle_of(_PROMPT, _OUTPUT), _PROMPT + _OUTPUT
    firsts = [seconds_at(_short(points), _PROMPT) for points in ends_of(prefills)]
    steps = [seconds_at(_short(points), middle) for points in ends_of(decodes)]
    with exact_arithmetic():
        requests = [
            first + written_seconds(step, _OUTPUT, sequences)
            for first, step in zip(firsts, steps, strict=True)
        ]
        machines = [machines_for(_RATE, seconds) for seconds in requests]
        low, mean, high = (rented_per_million(_HOUR, count, _RATE, tokens) for count in machines)
    return answers_program(
        {
            "timed": _within(prefills, _PROMPT) * _within(decodes, middle),
            "first": firsts[1],
            "token": token_seconds(firsts[1], steps[1], _OUTPUT, sequences),
            "request": requests[1],
            "machines": machines[1],
            "low": low,
            "mean": mean,
            "high": high,
            "full": busy_per_million(_HOUR, requests[1], tokens),
            "turn": break_even_rate(_HOUR, symbol("api_request")),
        }
    )


def _short(points: Sequence[tuple[int, Decimal]]) -> list[tuple[int, Decimal]]:
    """Times of nine digits: a doubled digit would cost more than it tells."""
    return [(tokens, Decimal(f"{seconds:.9g}")) for tokens, seconds in points]


def _within(steps: Sequence[tuple[int, Time]], tokens: Decimal) -> Decimal:
    """1 where a length is not outside of those that were timed, else 0; of a symbol the formula."""
    shortest, longest = Decimal(steps[0][0]), Decimal(steps[-1][0])
    at_most = where(tokens <= longest, Decimal(1), Decimal(0))
    return where(tokens < shortest, Decimal(0), at_most)


def _api(api: ApiPrice) -> Json:
    request = api.request(_PROMPT, _OUTPUT)
    cost = {"request": request, "mean": request * MILLION / (_PROMPT + _OUTPUT)}
    return {
        "name": one_line(f"{api.provider}, {api.name}"),
        "as_of": str(api.as_of),
        "currency": api.currency,
        "program": answers_program(cost),
    }
