"""What a decoder's page says beside those of other models: tokens, their cost, APIs beside it."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from epochcost.analysis.tokens import (
    Requests,
    TimedDecoder,
    api_per_million,
    break_even_per_second,
    serving_offers,
)
from epochcost.report.charts.figure import Figure
from epochcost.report.charts.tokens import cost_by_rate, phase_rates
from epochcost.report.pages.page import Report
from epochcost.specs.model import Model

# The request of the pages' figures, where it was timed: as long as a question and its answer.
_USUAL = Requests(Decimal("0.1"), 200, 100)


def token_context(report: Report, model: Model | None) -> Mapping[str, Any]:
    """What the template shows of a decoder; nothing for other models."""
    if model is None or model.decoder is None:
        return {"decoder": None}
    timed = decoders_of(report, model)
    asked = _USUAL
    offers = serving_offers(report.catalogue, timed, asked)
    apis = [one for one in report.catalogue.apis.values() if one.model == model.id]
    return {
        "decoder": model.decoder,
        "timed": timed,
        "request": asked,
        "offers": offers,
        "apis": [
            {
                "api": api,
                "per_million": api_per_million(api, asked),
                "from": break_even_per_second(offers[0], api, asked) if offers else None,
            }
            for api in sorted(apis, key=lambda one: api_per_million(one, asked))
        ],
    }


def decoders_of(report: Report, model: Model) -> list[TimedDecoder]:
    """What was timed of one decoder."""
    return [one for one in report.decoders if one.model == model.id]


def token_figures(report: Report, model: Model | None, name: str) -> Mapping[str, Figure | None]:
    """The charts of a decoder's page; none for other models."""
    if model is None or model.decoder is None:
        return {}
    timed = decoders_of(report, model)
    offers = serving_offers(report.catalogue, timed, _USUAL)
    apis = [one for one in report.catalogue.apis.values() if one.model == model.id]
    return {
        "traffic": cost_by_rate(offers, apis, _USUAL, identifier=f"{name}-traffic"),
        "phases": phase_rates(timed, identifier=f"{name}-phases"),
    }
