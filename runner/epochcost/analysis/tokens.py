"""Compute the cost of requests to a decoder, on machines with a price and behind APIs.

The machine serves several sequences with continuous batching (Yu et al., Orca, OSDI 2022). It reads
each prompt alone, and adds a token to all sequences together. No request waits in a queue.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache, partial
from itertools import starmap

import numpy as np

from epochcost.analysis.machines import Machine
from epochcost.analysis.observations import Kind
from epochcost.analysis.odds import normal_draws
from epochcost.analysis.phases import TimedDecoder
from epochcost.analysis.rows import mark_of
from epochcost.cost.estimate import Estimate, MachineTime, Time, Unpriced
from epochcost.cost.jobs import machines_for_load
from epochcost.cost.money import exact_arithmetic
from epochcost.predict.joint import DRAWS, seed_of
from epochcost.predict.process import Vector
from epochcost.results.kept import KeptArray
from epochcost.specs.api import MILLION, ApiPrice
from epochcost.specs.catalogue import Catalogue, current_prices
from epochcost.specs.price import Price
from epochcost.units import HOURS_PER_BILLED_MONTH, share

_HOUR_SECONDS = Decimal(3600)
# Share of busy time above which simultaneous requests wait long for each other.
MOST_BUSY = Decimal("0.8")


@dataclass(frozen=True, slots=True)
class Requests:
    """Requests to a decoder: their rate, their lengths in tokens, and bounds on latencies.

    ``first_seconds`` bounds the time to the first token, ``token_seconds`` the time between tokens.
    ``cached_share`` of a prompt is read from the prompt cache, ``written_share`` is written to it.
    If ``batch``, answers may take a day.
    """

    per_second: Decimal
    prompt: int
    output: int
    first_seconds: Decimal | None = None
    token_seconds: Decimal | None = None
    cached_share: Decimal = Decimal(0)
    written_share: Decimal = Decimal(0)
    batch: bool = False

    @property
    def tokens(self) -> int:
        """Tokens of a request, read and written."""
        return self.prompt + self.output

    @property
    def lengths_text(self) -> str:
        """The lengths of prompt and answer in a phrase."""
        return f"{self.prompt:,} tokens read and {self.output:,} written"

    @property
    def millions_a_month(self) -> Decimal:
        """Millions of tokens that a month of such requests reads and writes."""
        hourly = self.per_second * self.tokens * _HOUR_SECONDS
        return hourly * HOURS_PER_BILLED_MONTH / MILLION

    def bounds_met(self, first: Decimal | float, token: Decimal | float) -> bool:
        """Whether the time to the ``first`` token and the time between tokens keep the bounds."""
        return all(
            bound is None or seconds <= bound
            for seconds, bound in ((first, self.first_seconds), (token, self.token_seconds))
        )


@dataclass(frozen=True, slots=True)
class Deployment:
    """A decoder served on a machine; each of its ``copies`` runs on ``tensor_parallel`` devices."""

    machine: Machine
    precision: str
    software: str
    kind: Kind = "measured"
    copies: int = 1
    tensor_parallel: int = 1


@dataclass(frozen=True, slots=True)
class Capacity:
    """The capacity of a machine if each copy of the model serves ``sequences`` at once.

    ``first`` is the time to the first token without waiting, ``token`` the time between tokens.
    ``request`` is no latency, but the inverse of the machine's rate of requests. ``draws`` are
    samples of log(``request`` / its mean), None if the times were measured.
    """

    sequences: int
    first: Time
    token: Time
    request: Time
    draws: KeptArray | None = field(default=None, repr=False, compare=False)

    @property
    def per_second(self) -> Decimal:
        """The most requests a second that the machine answers."""
        return 1 / self.request.mean

    def keeps(self, requests: Requests) -> bool:
        """Whether the mean latencies are within the bounds of ``requests``."""
        return requests.bounds_met(self.first.mean, self.token.mean)


def capacities(decoder: TimedDecoder, requests: Requests) -> Iterator[Capacity]:
    """Yield the machine's capacity for each number of sequences at once that was timed.

    A new request replaces each ended sequence. A number of sequences is left out if the prompt, or
    the context in the middle of an answer, is outside the timed lengths.
    """
    prompt, output = Decimal(requests.prompt), Decimal(requests.output)
    prefill = decoder.time("prefill", prompt, 1)
    for sequences in decoder.sequences:
        # A step takes its mean time in the middle of an answer.
        decode = decoder.time("decode", prompt + output / 2, sequences)
        if prefill is None or decode is None:
            continue
        with exact_arithmetic():
            ends = list(zip(ends_of_time(prefill), ends_of_time(decode), strict=True))
            token = Time(*(token_seconds(*end, output, sequences) for end in ends))
            request = Time(*(first + output * step / sequences for first, step in ends))
            yield Capacity(sequences, prefill, token, request)


def token_seconds(prefill: Decimal, step: Decimal, output: Decimal, sequences: int) -> Decimal:
    """Mean seconds between two tokens of an answer, if ``sequences`` are served at once.

    A decoding step takes ``step`` seconds. During an answer of ``output`` tokens, each other
    sequence ends once. The answer then waits ``prefill`` seconds for the next prompt.
    """
    return step + prefill * (sequences - 1) / output


def machines_for(per_second: Decimal, request_seconds: Decimal) -> Decimal:
    """Machines (at least 1) for a rate of requests, each busy at most the share ``MOST_BUSY``."""
    return machines_for_load(per_second, request_seconds, MOST_BUSY)


def rented_per_million(
    hour: Decimal, machines: Decimal, per_second: Decimal, tokens: Decimal
) -> Decimal:
    """Cost of a million tokens on machines that are rented all the time, idle or not.

    ``hour`` is one machine's hourly cost, ``per_second`` is for all, ``tokens`` for one request.
    """
    return hour * MILLION / (per_second * tokens * _HOUR_SECONDS) * machines


def busy_per_million(hour: Decimal, request_seconds: Decimal, tokens: Decimal) -> Decimal:
    """The cost of a million tokens on a machine that is never idle."""
    return hour * request_seconds / _HOUR_SECONDS * MILLION / tokens


def break_even_rate(hour: Decimal, request_cost: Decimal) -> Decimal:
    """Requests a second above which a machine costs less than ``request_cost`` a request."""
    return hour / _HOUR_SECONDS / request_cost


def ends_of_time(time: Time) -> tuple[Decimal, Decimal, Decimal]:
    """The low end, the mean and the high end of a time."""
    return time.low, time.mean, time.high


@dataclass(frozen=True, slots=True)
class ServingOffer:
    """A machine under a price plan, for the requests in question.

    The requests keep ``machines`` machines busy for the share ``busy`` of the time. ``hour`` is the
    hourly cost of one. ``per_million`` is for a million tokens with idle time, ``full`` without.
    """

    deployment: Deployment
    price: Price
    capacity: Capacity
    machines: int
    busy: Decimal
    hour: Decimal
    per_million: Estimate
    full: Estimate

    @property
    def mark(self) -> str:
        """The kind of evidence, such as "measured", with a note if the price is assumed."""
        return mark_of(self.deployment.kind, self.price)

    @property
    def load_text(self) -> str:
        """The share of the time in which the machines are busy, as text such as "37 % busy"."""
        return f"{share(self.busy)} busy"


@dataclass(frozen=True, slots=True)
class ApiOffer:
    """An API, and its cost of a million tokens of the requests in question."""

    api: ApiPrice
    per_million: Decimal

    @property
    def price(self) -> ApiPrice:
        """The price list of the API."""
        return self.api


def priced_offers(
    catalogue: Catalogue, deployments: Iterable[tuple[Deployment, Capacity]], requests: Requests
) -> tuple[ServingOffer, ...]:
    """Price deployments at all current prices; cheapest first, prices with drawbacks last."""
    plans = cache(partial(hourly_plans, catalogue))
    offers = (
        _offer(deployment, price, hour, capacity, requests)
        for deployment, capacity in deployments
        for price, hour in plans(deployment.machine)
    )
    return tuple(sorted(offers, key=_cheapest_first))


def _cheapest_first(offer: ServingOffer) -> tuple[bool, Decimal, Decimal]:
    return bool(offer.price.reservation), offer.per_million.mean, offer.full.mean


def _offer(
    deployment: Deployment, price: Price, hour: Decimal, capacity: Capacity, requests: Requests
) -> ServingOffer:
    with exact_arithmetic():
        times, tokens = ends_of_time(capacity.request), Decimal(requests.tokens)
        machines = [machines_for(requests.per_second, seconds) for seconds in times]
        bills = [rented_per_million(hour, count, requests.per_second, tokens) for count in machines]
        full = [busy_per_million(hour, seconds, tokens) for seconds in times]
        busy = requests.per_second * capacity.request.mean / machines[1]
    return ServingOffer(
        deployment=deployment,
        price=price,
        capacity=capacity,
        machines=int(machines[1]),
        busy=busy,
        hour=hour,
        per_million=_estimate(price, bills),
        full=_estimate(price, full),
    )


def cost_draws(offer: ServingOffer | ApiOffer, requests: Requests) -> Vector:
    """Draws [DRAWS] of the cost of a million tokens on machines or behind an API.

    Each draw rents the fewest machines that serve ``requests``. An API costs the same in each draw.
    """
    if isinstance(offer, ApiOffer):
        return np.full(DRAWS, float(offer.per_million))
    request = offer.capacity.request
    drawn = offer.capacity.draws
    if drawn is None:
        drawn = normal_draws(request, seed_of(repr(offer.deployment)))
    rate, tokens = requests.per_second, Decimal(requests.tokens)
    machines = np.ceil(float(rate * request.mean / MOST_BUSY) * np.exp(drawn)).clip(1)
    with exact_arithmetic():
        alone = rented_per_million(offer.hour, Decimal(1), rate, tokens)
    costs: Vector = float(alone) * machines
    return costs


def _estimate(price: Price, ends: Sequence[Decimal]) -> Estimate:
    low, mean, high = ends
    return Estimate(low, mean, high, price.currency, price.id, price.assumed)


def hour_of(machine: Machine, price: Price) -> Decimal | None:
    """Hourly cost of a machine that serves for a month; None if the plan does not apply to it."""
    # Long enough that minimum charges and billing steps do not matter.
    month = Time.exact(HOURS_PER_BILLED_MONTH * _HOUR_SECONDS)
    cost = MachineTime(month, machine.vcpus, machine.device == "cuda", serving=True).cost(price)
    return None if isinstance(cost, Unpriced) else cost.mean / HOURS_PER_BILLED_MONTH


def hourly_plans(catalogue: Catalogue, machine: Machine) -> list[tuple[Price, Decimal]]:
    """The current prices that can be applied to a machine, each with the result of `hour_of`."""
    prices = current_prices(catalogue.prices_of(machine.hardware))
    return [(price, hour) for price in prices if (hour := hour_of(machine, price)) is not None]


def api_offers(apis: Iterable[ApiPrice], requests: Requests) -> tuple[ApiOffer, ...]:
    """Price a million tokens of ``requests`` at each API, cheapest first."""
    costs = ((api, api_request(api, requests) * MILLION / requests.tokens) for api in apis)
    return tuple(sorted(starmap(ApiOffer, costs), key=lambda offer: offer.per_million))


def api_request(api: ApiPrice, requests: Requests) -> Decimal:
    """The API's price of one request."""
    shares = requests.cached_share, requests.written_share
    return api.request(requests.prompt, requests.output, *shares, batch=requests.batch)


def break_even_per_second(offer: ServingOffer, api: ApiPrice, requests: Requests) -> Decimal | None:
    """Requests a second above which a machine is cheaper than the API.

    None if the API is free or in another currency, or if the load would exceed ``MOST_BUSY``.
    """
    price = api_request(api, requests)
    if price <= 0 or api.currency != offer.price.currency:
        return None
    rate = break_even_rate(offer.hour, price)
    return rate if rate <= MOST_BUSY * offer.capacity.per_second else None
