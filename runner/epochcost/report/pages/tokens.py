"""What a decoder's page says beside those of other models: tokens, their cost, APIs beside it.

For other traffic than the page's own the browser does the same (`tokens.js`) with what is published
here as a script: times of phases, prices of an hour, prices of APIs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from epochcost.analysis.observations import Workload
from epochcost.analysis.phases import TimedDecoder
from epochcost.analysis.roofline import decoded_steps
from epochcost.analysis.rows import group_by
from epochcost.analysis.tokens import USUAL, ServingOffer, api_per_million, hour_of, serving_offers
from epochcost.plan.work import ENGINE_SEQUENCES
from epochcost.report.charts.decoding import pace_chart, rate_map, step_bars
from epochcost.report.charts.figure import Figure
from epochcost.report.charts.served_tokens import waiting_chart
from epochcost.report.charts.tokens import cost_by_rate
from epochcost.report.escape import one_line
from epochcost.report.pages.page import Report
from epochcost.specs.api import ApiPrice
from epochcost.specs.catalogue import current_prices
from epochcost.specs.model import Model

_FOLDER = "data/calculator/tokens"
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ApiOffer:
    """What an API asks for a million tokens of the page's requests."""

    api: ApiPrice
    per_million: Decimal


def token_context(report: Report, model: Model | None) -> Mapping[str, Any]:
    """What the template shows of a decoder; nothing for other models."""
    if model is None or model.decoder is None:
        return {"decoder": None}
    timed = decoders_of(report, model)
    behind = [one for one in report.served_decoders if one.model == model.id]
    asked = [ApiOffer(one, api_per_million(one, USUAL)) for one in _apis(report, model)]
    return {
        "decoder": model.decoder,
        "timed": timed,
        "request": USUAL,
        "offers": serving_offers(report.catalogue, timed, USUAL),
        "apis": sorted(asked, key=lambda one: one.per_million),
        "script": f"{_FOLDER}/{model.id}.js",
        "sequences": ENGINE_SEQUENCES,
        "asked_decoders": behind,
        "shortest": min((rate.seconds for one in behind for rate in one.rates), default=0.0),
    }


def decoders_of(report: Report, model: Model) -> list[TimedDecoder]:
    """What was timed of one decoder."""
    return [one for one in report.decoders if one.model == model.id]


def _apis(report: Report, model: Model) -> list[ApiPrice]:
    """Those that serve a model of the same shape."""
    return [one for one in report.catalogue.apis.values() if one.model == model.id]


def token_figures(report: Report, model: Model | None, name: str) -> Mapping[str, Figure | None]:
    """The charts of a decoder's page; none for other models."""
    if model is None or model.decoder is None:
        return {}
    timed = decoders_of(report, model)
    offers = serving_offers(report.catalogue, timed, USUAL)
    found: dict[str, Figure | None] = {
        "traffic": cost_by_rate(offers, _apis(report, model), USUAL, identifier=f"{name}-traffic"),
        "pace": pace_chart(timed, USUAL, identifier=f"{name}-pace"),
        "waiting": waiting_chart(
            [one for one in report.served_decoders if one.model == model.id],
            identifier=f"{name}-waiting",
        ),
    }
    for at, own in enumerate(group_by(timed, lambda one: one.machine).values(), start=1):
        steps = [step for one in own for step in decoded_steps(report.inputs, one)]
        found[f"phases-{at}"] = rate_map(own, identifier=f"{name}-phases-{at}")
        found[f"steps-{at}"] = step_bars(steps, identifier=f"{name}-steps-{at}")
    return found


def cheapest_tokens(report: Report, workload: Workload) -> list[ServingOffer]:
    """Where a decoder was timed, cheapest first on machines that are never idle; none of others."""
    own = [one for one in report.decoders if workload.is_model and one.model == workload.id]
    offers = serving_offers(report.catalogue, own, USUAL)
    return sorted(offers, key=lambda one: (bool(one.price.reservation), one.full.mean))


def token_files(report: Report) -> Iterator[tuple[str, str]]:
    """A script for each decoder that was timed, by address: a page on a disk can fetch nothing."""
    for model in report.catalogue.models.values():
        timed = decoders_of(report, model)
        if timed:
            known = {
                "decoders": [_decoder(report, one) for one in timed],
                "apis": [_api(one) for one in _apis(report, model)],
            }
            data = json.dumps(known, separators=(",", ":"), allow_nan=False)
            yield f"{_FOLDER}/{model.id}.js", f'window["epochcost-tokens/{model.id}"]={data};\n'


def _decoder(report: Report, timed: TimedDecoder) -> Json:
    """Phases by length; a doubled digit would cost more than it tells."""
    machine = timed.machine
    prices = current_prices(report.catalogue.prices_of(machine.hardware))
    priced = [(price, hour) for price in prices if (hour := hour_of(machine, price)) is not None]
    phases = sorted(timed.phases, key=lambda one: one.phase.tokens)
    return {
        "machine": machine.hardware,
        "name": one_line(machine.name),
        "precision": timed.precision,
        "phases": [
            [
                one.phase.name,
                one.phase.tokens,
                one.sequences,
                *(float(f"{end:.9g}") for end in (one.step.low, one.step.mean, one.step.high)),
            ]
            for one in phases
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


def _api(api: ApiPrice) -> Json:
    return {
        "name": one_line(f"{api.provider}, {api.name}"),
        "as_of": str(api.as_of),
        "currency": api.currency,
        "input": float(api.input_per_million),
        "output": float(api.output_per_million),
    }
