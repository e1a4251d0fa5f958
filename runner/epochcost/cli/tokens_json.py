"""Make JSON of the answer of `epochcost tokens`, with exact figures."""

from __future__ import annotations

from typing import Any

from epochcost.analysis.serving import PERCENTILES, ServedDecoder
from epochcost.analysis.token_answers import TokenAnswer, name_of, reservation_of
from epochcost.analysis.tokens import ApiOffer, ServingOffer, break_even_per_second
from epochcost.cli.results import reported_as_json


def answer_as_json(answer: TokenAnswer) -> dict[str, Any]:
    """Make JSON of the answer; ``ways`` lists machines and APIs together, cheapest first."""
    traffic, odds = answer.requests, answer.odds
    return {
        "model": answer.model,
        "precision": answer.precision,
        "requests_per_second": traffic.per_second,
        "prompt_tokens": traffic.prompt,
        "output_tokens": traffic.output,
        "cached_share": traffic.cached_share,
        "cache_write_share": traffic.written_share,
        "batch": traffic.batch,
        "first_token_seconds_at_most": traffic.first_seconds,
        "token_seconds_at_most": traffic.token_seconds,
        "choice": odds.choice if odds else None,
        "regret": odds.regret if odds else None,
        "self_hosting_wins": _wins(answer),
        "ways": [
            {"name": name_of(way), "kind": "api" if isinstance(way, ApiOffer) else "machine"}
            | {"per_million_tokens": way.per_million, "cheapest": answer.chance(way)}
            | {"reservation": reservation_of(way) or None}
            for way in answer.ways
        ],
        "machines": [_offer(offer, answer) for offer in answer.offers],
        "apis": [
            {"per_million_tokens": offer.per_million} | offer.api.model_dump(mode="json")
            for offer in answer.apis
        ],
        "left_out": answer.refused,
        "behind_an_engine": [_served(served) for served in answer.served],
        "reported_by_you": [reported_as_json(row) for row in answer.reported],
    }


def _wins(answer: TokenAnswer) -> dict[str, Any] | None:
    """The rate above which a machine is cheaper than the cheapest API; and that machine."""
    api = answer.cheapest_api
    wins = None if api is None else answer.wins_from(api)
    if wins is None:
        return None
    rate, offer = wins
    return {"from_requests_per_second": rate, "on": name_of(offer), "price": offer.price.id}


def _offer(offer: ServingOffer, answer: TokenAnswer) -> dict[str, Any]:
    capacity, deployment, traffic = offer.capacity, offer.deployment, answer.requests
    turns = {api.api.id: break_even_per_second(offer, api.api, traffic) for api in answer.apis}
    return {
        "hardware": deployment.machine.hardware,
        "price": offer.price.id,
        "precision": deployment.precision,
        "software": deployment.software,
        "evidence": offer.mark,
        "machines": offer.machines,
        "busy": offer.busy,
        "copies": deployment.copies,
        "tensor_parallel": deployment.tensor_parallel,
        "sequences": capacity.sequences,
        "requests_per_second_at_most": capacity.per_second,
        "first_token_seconds": capacity.first,
        "token_seconds": capacity.token,
        "request_seconds": capacity.request,
        "per_million_tokens": offer.per_million,
        "per_million_tokens_never_idle": offer.full,
        "cheaper_than_api_from_requests_per_second": {
            name: rate for name, rate in turns.items() if rate is not None
        },
    }


def _served(served: ServedDecoder) -> dict[str, Any]:
    """Make JSON of a decoder behind an engine on a machine, with measurements at every rate."""
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
