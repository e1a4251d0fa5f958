"""What a decoder's page says beside those of other models: tokens, their cost, APIs beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from epochcost.analysis.tokens import (
    Requests,
    TimedDecoder,
    api_per_million,
    serving_offers,
)
from epochcost.report.charts.figure import Figure
from epochcost.report.charts.tokens import cost_by_rate, phase_rates
from epochcost.report.pages.page import Report
from epochcost.specs.api import ApiPrice
from epochcost.specs.model import Model

# The request of the pages' figures, where it was timed: as long as a question and its answer.
_USUAL = Requests(Decimal("0.1"), 200, 100)


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
    asked = [ApiOffer(one, api_per_million(one, _USUAL)) for one in _apis(report, model)]
    return {
        "decoder": model.decoder,
        "timed": timed,
        "request": _USUAL,
        "offers": serving_offers(report.catalogue, timed, _USUAL),
        "apis": sorted(asked, key=lambda one: one.per_million),
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
    offers = serving_offers(report.catalogue, timed, _USUAL)
    return {
        "traffic": cost_by_rate(offers, _apis(report, model), _USUAL, identifier=f"{name}-traffic"),
        "phases": phase_rates(timed, identifier=f"{name}-phases"),
    }
