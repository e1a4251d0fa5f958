"""Make a decoder's page: the costs of requests and of a fine-tuning, and measured phases."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Any

from epochcost.analysis.observations import Workload
from epochcost.analysis.odds import Odds, odds
from epochcost.analysis.reported import reported_rows
from epochcost.analysis.roofline import decoded_steps
from epochcost.analysis.rows import group_by
from epochcost.analysis.token_answers import TokenAnswer, name_of, reservation_of
from epochcost.analysis.tokens import (
    ApiOffer,
    Requests,
    ServingOffer,
    cost_draws,
    machines_for,
    rented_per_million,
)
from epochcost.cost.money import exact_arithmetic
from epochcost.plan.work import ENGINE_SEQUENCES
from epochcost.report.charts.contest import cost_against_time
from epochcost.report.charts.figure import Figure, day_range
from epochcost.report.charts.load import RATES, Way, cost_by_load
from epochcost.report.charts.waiting import waiting_chart
from epochcost.report.escape import one_line
from epochcost.report.pages.page import TUNING, Job, Page, Report, stem, workload_uri
from epochcost.report.traffic import FOLDER, PRECISIONS
from epochcost.report.wording import per_second_words
from epochcost.specs.model import Model

Offered = ServingOffer | ApiOffer


def page(report: Report, about: Mapping[str, Any], model: Model) -> Page:
    """Make the page of a decoder; ``about`` has the values that all pages about a model show."""
    workload, name = about["workload"], model.id
    timed = report.decoders.get(name, ())
    served = report.served_decoders.get(name, ())
    answer = report.tokens.get(name)
    return Page(
        uri=workload_uri(workload),
        title=model.name,
        template="decoder.md.jinja",
        description=f"What {model.name} costs to serve and to fine-tune, by machine, and by API.",
        context={
            **about,
            "without": _without(answer),
            "decoder": model.decoder,
            # None if nothing can answer the usual requests.
            "answer": answer,
            "odds": _machine_odds(answer) if answer else None,
            "turn": _turn(answer) if answer else None,
            "timed": timed,
            # Decoding steps and the shortest possible time of their reads, by their evidence.
            "memory": {
                step.timed.evidence.uri: step
                for decoder_timed in timed
                for step in decoded_steps(report.inputs, decoder_timed)
            },
            "traffic": FOLDER,
            "precisions": PRECISIONS,
            # The most requests that the engine processes together.
            "sequences": ENGINE_SEQUENCES,
            "served": served,
            "shortest": min((rate.seconds for each in served for rate in each.rates), default=0.0),
            "reported": reported_rows(report.inputs, name),
            "tuned": report.tuned.get(name, {}),
            "lora": report.contests_of(workload).get("lora"),
            "tuning": TUNING,
        },
        figures={
            "load": load_figure(report, workload),
            "lora": tuning_figure(report, workload),
            "waiting": waiting_chart(served, identifier=f"{stem(workload)}-waiting"),
        },
    )


def load_figure(report: Report, workload: Workload) -> Figure | None:
    """Chart the cost of a million tokens against the load, also for the home page."""
    answer = report.tokens.get(workload.id)
    if answer is None or not answer.ways:
        return None
    requests, ways = answer.requests, [*map(partial(_way, answer.requests), _contending(answer))]
    figure = cost_by_load(
        ways,
        identifier=f"{stem(workload)}-load",
        currency=_currency(answer.ways[0]),
        requests=f"Requests of {requests.prompt:,} tokens read and {requests.output:,} written",
        source=f"Times predicted; prices of {day_range(map(_day, _contending(answer)))}",
        turn=per_second_words(turn[0]) if (turn := _turn(answer)) else "",
    )
    return replace(figure, scripted=True) if figure else None


def tuning_figure(report: Report, workload: Workload) -> Figure | None:
    """Chart cost against time of fine-tuning by LoRA, for this page and the home page."""
    machines = report.contests_of(workload).get("lora")
    name = f"{stem(workload)}-lora"
    figure = cost_against_time(machines, identifier=name, job="a fine-tuning by LoRA")
    return replace(figure, scripted=True) if figure else None


def _contending(answer: TokenAnswer) -> Iterator[Offered]:
    """Yield APIs and machines in a currency, but no machine that is dearer and not faster."""
    currency, least = _currency(answer.ways[0]), Decimal("Infinity")
    for offer in sorted(answer.offers, key=lambda each: (each.hour, each.capacity.request.mean)):
        if reservation_of(offer) or offer.price.currency != currency:
            continue
        if offer.capacity.request.mean < least:
            least = offer.capacity.request.mean
            yield offer
    yield from (api for api in answer.apis if not api.reservation and api.api.currency == currency)


def _currency(way: Offered) -> str:
    return way.api.currency if isinstance(way, ApiOffer) else way.price.currency


def _day(way: Offered) -> dt.date:
    return way.api.as_of if isinstance(way, ApiOffer) else way.price.as_of


def _way(requests: Requests, offer: Offered) -> Way:
    if isinstance(offer, ApiOffer):
        costs = (float(offer.per_million),) * len(RATES)
        return Way(one_line(f"{offer.api.provider} (API)"), costs, is_api=True)
    request, tokens = offer.capacity.request.mean, Decimal(requests.tokens)
    with exact_arithmetic():
        numbers = [(rate, machines_for(rate, request)) for rate in RATES]
        exact = [rented_per_million(offer.hour, count, rate, tokens) for rate, count in numbers]
    return Way(one_line(offer.deployment.machine.name), tuple(map(float, exact)))


def _turn(answer: TokenAnswer) -> tuple[Decimal, ServingOffer] | None:
    """The requests a second above which a machine beats the cheapest API; and that machine."""
    api = answer.cheapest_api
    return answer.wins_from(api) if api else None


def _machine_odds(answer: TokenAnswer) -> Odds[str] | None:
    """Compute the odds that the machine with the lowest mean cost really is the cheapest."""
    competing = [offer for offer in answer.machines if not reservation_of(offer)]
    draws = {name_of(offer): cost_draws(offer, answer.requests) for offer in competing}
    return odds(name_of(competing[0]), draws) if competing else None


def _without(answer: TokenAnswer | None) -> Mapping[str, tuple[str, ...]]:
    """The machines that cannot answer, by the reason."""
    refused = group_by(answer.refused if answer else (), lambda refusal: refusal.reason)
    return {
        reason: tuple(refusal.machine for refusal in refusals)
        for reason, refusals in refused.items()
    }


FIGURES: Mapping[Job, Callable[[Report, Workload], Figure | None]] = {
    "tokens": load_figure,
    "lora": tuning_figure,
}
