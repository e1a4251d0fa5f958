"""What a decoder's page says beside those of other models: tokens, their cost, APIs beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from epochcost.analysis.decoding import decoded_steps
from epochcost.analysis.observations import Workload
from epochcost.analysis.rows import group_by
from epochcost.analysis.tokens import (
    Requests,
    ServingOffer,
    TimedDecoder,
    api_per_million,
    serving_offers,
)
from epochcost.plan.trial import ENGINE_SEQUENCES
from epochcost.report.charts.decoding import pace_chart, rate_map, step_bars
from epochcost.report.charts.figure import Figure
from epochcost.report.charts.served_tokens import waiting_chart
from epochcost.report.charts.tokens import cost_by_rate
from epochcost.report.pages.page import Report
from epochcost.specs.api import ApiPrice
from epochcost.specs.model import Model

# The request of the pages' figures, where it was timed: as long as a question and its answer.
USUAL = Requests(Decimal("0.1"), 200, 100)


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
    asked = [ApiOffer(one, api_per_million(one, USUAL)) for one in _apis(report, model)]
    return {
        "decoder": model.decoder,
        "timed": timed,
        "request": USUAL,
        "offers": serving_offers(report.catalogue, timed, USUAL),
        "apis": sorted(asked, key=lambda one: one.per_million),
        "sequences": ENGINE_SEQUENCES,
        "asked_decoders": [one for one in report.served_decoders if one.model == model.id],
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
