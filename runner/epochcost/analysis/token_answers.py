"""Find the machines and APIs that answer requests for tokens at the lowest cost."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from itertools import starmap
from operator import attrgetter
from typing import Literal, NamedTuple, TypeVar

from pydantic import TypeAdapter

from epochcost.analysis.decoder_places import Place, Refusal, decoder_places
from epochcost.analysis.inputs import Inputs
from epochcost.analysis.odds import Odds, odds
from epochcost.analysis.phases import TimedDecoder, timed_decoders
from epochcost.analysis.reported import ReportedRow, reported_rows
from epochcost.analysis.rows import in_currency, usual_currency
from epochcost.analysis.serving import ServedDecoder, served_decoders
from epochcost.analysis.serving_capacity import ENGINES, ServedModel, fitting, predicted_capacities
from epochcost.analysis.tokens import (
    MOST_BUSY,
    ApiOffer,
    Capacity,
    Deployment,
    Requests,
    ServingOffer,
    api_offers,
    break_even_per_second,
    capacities,
    cost_draws,
    priced_offers,
)
from epochcost.cost.estimate import Estimate
from epochcost.errors import InputError
from epochcost.predict.decoders.rows import BITS, token_rows
from epochcost.predict.decoders.serving import ServingForecaster
from epochcost.results.kept import Keep
from epochcost.specs.decoder import ServedPrecision
from epochcost.statistics import first_by, group_by
from epochcost.units import render_count

# A machine probably costs less than an API at a usual cost below this share of the API's.
_CLEARLY_LESS = Decimal("0.9")
# Precisions of our own phases that are listed with predictions in 16 bits.
_AS_PRECISE = ("bf16", "fp16", "tf32", "fp32")
# Requests to compare models with; short ones if no machine answers the first.
_USUAL = (Requests(Decimal(1), 1000, 200), Requests(Decimal(1), 200, 100))
Software = Literal["vLLM", "TensorRT-LLM", "llama.cpp", "ONNX Runtime"]
Way = ServingOffer | ApiOffer
WayT = TypeVar("WayT", bound=Way)
Deployed = tuple[list[tuple[Deployment, Capacity]], list[Refusal]]
_KEPT = Keep(
    "capacities",
    TypeAdapter(tuple[str, Deployed]),
    (
        "analysis/decoder_places.py",
        "analysis/serving_capacity.py",
        "analysis/tokens.py",
        "cost/estimate.py",
        "predict",
        "specs/hardware.py",
    ),
)


class BreakEven(NamedTuple):
    """A machine and an API that cost the same at ``per_second`` requests a second.

    ``offer`` is the machine; ``api`` is the API's cost of a million tokens.
    """

    per_second: Decimal
    offer: ServingOffer
    api: Decimal

    @property
    def busiest(self) -> Estimate:
        """The machine's cost of a million tokens at its highest load, ``MOST_BUSY`` of the time."""
        full = self.offer.full
        low, mean, high = (cost / MOST_BUSY for cost in (full.low, full.mean, full.high))
        return replace(full, low=low, mean=mean, high=high)

    @property
    def saves(self) -> bool:
        """Whether ``busiest`` is below ``api`` at any likely speed of the machine."""
        return self.busiest.high < self.api

    @property
    def comparison(self) -> str:
        """Compare ``busiest`` with ``api``, for example "probably costs less than"."""
        if self.saves:
            return "costs less than"
        less = self.busiest.mean < _CLEARLY_LESS * self.api
        return "probably costs less than" if less else "costs about as much as"


@dataclass(frozen=True)
class TokenAnswer:
    """Requests to a model in a precision, and the machines and APIs that can answer them.

    ``offers`` has each machine under each price plan. ``offers`` and ``apis`` are sorted by cost.
    Both are in the most frequent currency of the machines' prices. ``refused`` has machines that
    cannot answer, and machines and APIs with other currencies. ``served`` has our measurements
    under load, ``reported`` those by readers. ``published_precision`` is that of the published
    weights.
    """

    model: str
    requests: Requests
    precision: ServedPrecision
    offers: tuple[ServingOffer, ...]
    apis: tuple[ApiOffer, ...]
    refused: tuple[Refusal, ...]
    served: tuple[ServedDecoder, ...]
    reported: tuple[ReportedRow, ...] = ()
    published_precision: ServedPrecision = "bf16"

    @property
    def precision_text(self) -> str:
        """The precision; except for bf16, with a note if the weights were published in it."""
        if self.precision == "bf16" or self.precision != self.published_precision:
            return self.precision
        return f"{self.precision} ({int(BITS[self.precision])} bits, as published)"

    @cached_property
    def machines(self) -> tuple[ServingOffer, ...]:
        """The cheapest offer of each machine, by cost; assumed or implausible prices come last."""
        return first_by(self.offers, name_of)

    @cached_property
    def ways(self) -> tuple[Way, ...]:
        """Machines and APIs by cost; those whose price has a drawback (assumed, say) come last."""
        return in_order((*self.machines, *self.apis))

    @property
    def cheapest_machine(self) -> ServingOffer | None:
        """The cheapest machine, at a price without a drawback if any has one; None without any."""
        return next(iter(self.machines), None)

    @property
    def confirmed(self) -> ServingOffer | None:
        """The cheapest machine at a price that a source confirms; None without such a machine."""
        sure = (each for each in self.offers if not each.price.unconfirmed_text)
        return next((offer for offer in sure if not offer.price.reservation), None)

    @property
    def cheapest_api(self) -> ApiOffer | None:
        """The cheapest API whose price is still offered and plausible; None without such an API."""
        return next((offer for offer in self.apis if not offer.price.reservation), None)

    @cached_property
    def odds(self) -> Odds[str] | None:
        """Each machine's and API's probability of being the cheapest; see `odds_of`."""
        return self.odds_of(self.ways)

    def odds_of(self, ways: Sequence[Way]) -> Odds[str] | None:
        """For each machine or API in ``ways``, the probability that it is the cheapest.

        Ways whose price has a drawback (it is assumed, say) are left out, unless all have one. The
        ``choice`` of the result is the first remaining way. None if ``ways`` is empty.
        """
        competing = first_by(_without_drawback(ways), name_of)
        draws = {name_of(way): cost_draws(way, self.requests) for way in competing}
        return odds(name_of(competing[0]), draws) if competing else None

    def chance(self, way: Way) -> float:
        """The probability that a machine or an API is the cheapest of all."""
        return self.odds.shares.get(name_of(way), 0.0) if self.odds else 0.0

    @property
    def turns(self) -> Sequence[BreakEven]:
        """The lowest rate of requests at which a machine costs the same as the cheapest API.

        If that machine may still cost more at its highest load, the lowest rate of a machine that
        then costs less at any likely speed follows. Machines whose price has a drawback (it is
        assumed, say) count only if all have one. Empty without an API, or if every machine that is
        busy for the share ``MOST_BUSY`` costs more.
        """
        api = self.cheapest_api
        turns = sorted(
            (
                BreakEven(rate, offer, api.per_million)
                for offer in _without_drawback(self.machines)
                if api
                if (rate := break_even_per_second(offer, api.api, self.requests)) is not None
            ),
            key=lambda turn: turn.per_second,
        )
        first, saving = turns[:1], [turn for turn in turns if turn.saves][:1]
        return first if first == saving else first + saving

    @property
    def turn(self) -> BreakEven | None:
        """The first of `turns`, if any."""
        return next(iter(self.turns), None)


def _without_drawback(ways: Sequence[WayT]) -> Sequence[WayT]:
    """Leave out ways whose price has a drawback, unless all have one."""
    return [way for way in ways if not way.price.reservation] or ways


def name_of(way: Way) -> str:
    """The machine's name, or the API's provider and the provider's name for the model."""
    if isinstance(way, ApiOffer):
        return f"{way.api.provider}, {way.api.name}"
    return way.deployment.machine.name


def in_order(ways: Iterable[Way]) -> tuple[Way, ...]:
    """Sort machines and APIs by cost; those whose price has a drawback come last.

    A price has a drawback if it is assumed, implausible or no longer offered, if it requires a
    commitment, or if its interruptions are unknown.
    """
    return tuple(sorted(ways, key=_cheapest_first))


def _cheapest_first(way: Way) -> tuple[bool, Decimal]:
    cost = way.per_million if isinstance(way, ApiOffer) else way.per_million.mean
    return bool(way.price.reservation), cost


class TokenMarket:
    """The machines and APIs that can serve a project's decoders, with data that is read once."""

    def __init__(self, inputs: Inputs, forecaster: ServingForecaster | None = None) -> None:
        self.inputs = inputs
        # Whether there are published rows from which to forecast tokens.
        self.forecasts_tokens = bool(forecaster or inputs.catalogue.tables_of("tokens"))
        self._forecaster = forecaster

    @cached_property
    def forecaster(self) -> ServingForecaster:
        """The forecaster that was passed in, else one that learns from published token rates."""
        rows = token_rows(self.inputs.catalogue)
        return self._forecaster or ServingForecaster(rows, self.inputs.cache)

    @cached_property
    def places(self) -> tuple[Sequence[Place], Sequence[Refusal]]:
        """Machines with a spec of their accelerator or CPU, and the reasons against all others."""
        return decoder_places(self.inputs.catalogue)

    @cached_property
    def evidence(self) -> str:
        """A digest of devices, decoders and token rates, from which times are forecast."""
        catalogue = self.inputs.catalogue
        decoders = {name: each.decoder for name, each in catalogue.models.items() if each.decoder}
        tables = catalogue.tables_of("tokens")
        digest = hashlib.sha256(repr((catalogue.devices, decoders, tables)).encode())
        for table in tables:
            for content in catalogue.table_contents(table).values():
                digest.update(content)
        return digest.hexdigest()

    @cached_property
    def served(self) -> Mapping[str, tuple[ServedDecoder, ...]]:
        """Decoders whose speed in a serving engine was measured, by model id."""
        return group_by(served_decoders(self.inputs), lambda served: served.model)

    def answer(
        self,
        name: str,
        requests: Requests,
        precision: ServedPrecision | None = None,
        software: Software | None = None,
        devices: int | None = None,
    ) -> TokenAnswer:
        """Price all machines and APIs for requests to a model; ``software`` None allows any.

        By default, ``precision`` is that of the published weights. Machines with more than
        ``devices`` devices are priced only if they were measured. For "bf16", our measurements in
        fp16, tf32 and fp32 count, too. Raises InputError if the model is no decoder, if the
        requests exceed its context, or if no machine or API can answer.
        """
        catalogue = self.inputs.catalogue
        decoder = catalogue.decoder(name)
        if requests.tokens > decoder.context:
            raise InputError(
                f"--prompt {requests.prompt} --output {requests.output}: expected at most "
                f"{decoder.context} tokens together, the context of {name}"
            )
        precision = precision or decoder.published_precision
        model = ServedModel.of(name, decoder, precision)
        deployed, refused = self._measured(name, requests, precision, software)
        if model is not None and self.forecasts_tokens:
            predicted, unable = self._predicted(model, requests, software, devices)
            deployed += predicted
            refused += unable
        priced = priced_offers(catalogue, deployed, requests)
        listed = api_offers((api for api in catalogue.apis.values() if api.model == name), requests)
        every: tuple[Way, ...] = (*priced, *listed)
        # Machines decide, because APIs of a project with prices in euros may ask for dollars.
        usual = usual_currency(way.price.currency for way in (priced or listed))
        ways, others = in_currency(usual, every, attrgetter("price.currency"), name_of)
        refused += starmap(Refusal, others)
        answer = TokenAnswer(
            model=name,
            requests=requests,
            precision=precision,
            offers=tuple(way for way in ways if isinstance(way, ServingOffer)),
            apis=tuple(way for way in ways if isinstance(way, ApiOffer)),
            refused=tuple(refused),
            served=self.served.get(name, ()),
            reported=reported_rows(self.inputs, name),
            published_precision=decoder.published_precision,
        )
        if not (answer.offers or answer.apis or answer.served or answer.reported):
            raise InputError(_no_answer_message(answer))
        return answer

    def _measured(
        self, name: str, requests: Requests, precision: ServedPrecision, software: Software | None
    ) -> Deployed:
        as_precise = _AS_PRECISE if precision == "bf16" else (precision,)
        deployed, refusals = [], []
        for timed in timed_decoders(self.inputs, name):
            if timed.precision in as_precise and software in (None, "ONNX Runtime"):
                reached = list(capacities(timed, requests))
                sufficient = [
                    each
                    for each in reached
                    if requests.bounds_met(each.first.mean, each.token.mean)
                ]
                if sufficient:
                    best = max(sufficient, key=lambda capacity: capacity.per_second)
                    deployment = Deployment(timed.machine, timed.precision, timed.software)
                    deployed.append((deployment, best))
                else:
                    refusals.append(_measured_refusal(timed, reached))
        return deployed, refusals

    def _predicted(
        self, model: ServedModel, requests: Requests, software: Software | None, devices: int | None
    ) -> Deployed:
        engines = [engine for engine in ENGINES if software in (None, engine.name)]
        places, unknown = self.places
        places = [place for place in places if devices is None or place.count <= devices]
        layouts, unfit = fitting(model, places, engines, requests)
        question = (self.evidence, model, layouts, replace(requests, per_second=Decimal(1)))
        deployed, late = _KEPT.value(
            self.inputs.cache,
            question,
            lambda: predicted_capacities(self.forecaster, model, layouts, requests),
        )
        return deployed, [*unfit, *late, *unknown]


def usual_answers(market: TokenMarket) -> Mapping[str, TokenAnswer]:
    """Answers to typical requests by model id; to shorter ones if no machine can answer these."""
    answers: dict[str, TokenAnswer] = {}
    for model in market.inputs.catalogue.models.values():
        for requests in _USUAL if model.decoder else ():
            if model.id not in answers or not answers[model.id].offers:
                with contextlib.suppress(InputError):
                    answers[model.id] = market.answer(model.id, requests)
    return answers


def _no_answer_message(answer: TokenAnswer) -> str:
    groups = group_by(answer.refused, lambda refusal: refusal.reason)
    reasons = "; ".join(
        f"{reason}: {render_count(len(group), 'machine')}" for reason, group in groups.items()
    )
    return (
        f"{answer.model} in {answer.precision}: expected a machine with a price or an API that "
        f"answers such requests, found none ({reasons or 'no machine is declared'}): try another "
        "--precision or other bounds"
    )


def _measured_refusal(timed: TimedDecoder, slow_capacities: Sequence[Capacity]) -> Refusal:
    """Refuse a decoder: too slow, or not timed at these lengths if ``slow_capacities`` is empty."""
    where = f"{timed.machine.name} in {timed.precision}"
    if slow_capacities:
        times = [(float(each.first.mean), float(each.token.mean)) for each in slow_capacities]
        return Refusal.too_slow(where, times)
    lengths = "; ".join(
        f"{name} of {low} to {high} tokens" for name, (low, high) in timed.lengths.items()
    )
    return Refusal(where, "not timed at these lengths", f"timed: {lengths}")
