"""Chart the cost of a million tokens against the load (requests/s), for machines and APIs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Annotated, Any

from epochcost.analysis.token_answers import BreakEven, TokenAnswer, name_of
from epochcost.analysis.token_answers import Way as Offered
from epochcost.analysis.tokens import ApiOffer, Requests, machines_for, rented_per_million
from epochcost.cost.money import exact_arithmetic
from epochcost.report.charts import axes, theme
from epochcost.report.charts.data import ChartData, Shown, distinct
from epochcost.report.charts.figure import Figure, day_range
from epochcost.report.escape import one_line
from epochcost.report.wording import render_per_second

# Requests a second at which machines and APIs are compared: twelve in each factor of ten.
RATES = tuple(Decimal(f"{10 ** (step / 12):.3g}") for step in range(-24, 25))
# The rates of the highest factor of ten.
_HIGH = 12
# More lines cannot be told apart; costs that differ by less than this share are one line.
_MOST_MACHINES, _MOST_APIS, _ALIKE = 5, 3, 0.03
# Fewer lines, or fewer points that differ, are a sentence instead of a chart.
_LEAST = 2


@dataclass(frozen=True, slots=True)
class Way:
    """A machine or an API, and its cost of a million tokens at each request rate in ``RATES``."""

    name: str
    costs: tuple[float, ...]
    is_api: bool = False

    def wins_over(self, rivals: Sequence[Way]) -> bool:
        """Whether this machine or API costs over 3 % less than all rivals at some request rate."""
        least = [min(costs) for costs in zip(*(rival.costs for rival in rivals), strict=True)]
        pairs = zip(self.costs, least or [math.inf] * len(RATES), strict=True)
        return any(cost < (1 - _ALIKE) * lowest for cost, lowest in pairs)


@dataclass(frozen=True, slots=True)
class LoadCost:
    """The cost of a million tokens at a rate of requests, on a machine or from an API."""

    way: Annotated[str, Shown("Machine or API")]
    requests_per_second: Annotated[float, Shown("Requests/s", "number")]
    cost: Annotated[float, Shown("A million tokens", "money")]
    is_api: Annotated[bool, Shown("API")]


class CostByLoad(Figure):
    """Chart a line for each machine and API on logarithmic axes; the lines of APIs are dashed."""

    def layers(self, alt: Any) -> list[Any]:
        """Lines, invisible points for tooltips, and a shape at the end of each line."""
        last = max(self.data.values_of("requests_per_second"))
        base = self.marks(alt).encode(
            x=axes.log_axis(alt.X, self.data, "requests_per_second", "requests per second"),
            y=axes.log_axis(alt.Y, self.data, "cost", "cost of a million tokens"),
            color=theme.colour_by(alt, self.data, "way"),
        )
        points = base.encode(shape=theme.shape_by(alt, self.data, "way"))
        dashes = alt.condition("datum.is_api == 'yes'", alt.value([6, 4]), alt.value([1, 0]))
        ends = points.transform_filter(f"datum.requests_per_second == {last}")
        return [
            base.mark_line(strokeWidth=2).encode(strokeDash=dashes),
            self.data.with_tooltips(alt, points.mark_point(size=60, opacity=0)),
            ends.mark_point(filled=True, size=70, opacity=1),
        ]


def load_figure(answer: TokenAnswer, identifier: str) -> CostByLoad | None:
    """Chart the cheapest machines and APIs of ``answer``; None if too few can be charted."""
    requests, offers = answer.requests, [*_unbeaten_offers(answer)]
    names = distinct([*map(_short_name, offers)], [*map(name_of, offers)])
    named = zip(offers, names, strict=True)
    drawn = drawn_ways([_way(requests, offer, name) for offer, name in named])
    if len(drawn) < _LEAST:
        return None
    apis = "Dashed lines are the cheapest APIs."
    return CostByLoad(
        id=identifier,
        title=finding(drawn, answer.turn),
        description=(
            f"Requests of {requests.lengths_text}. Machines have list prices, and their idle time "
            "is billed, too. Higher loads need more machines. Machines that are cheapest at none "
            "of the loads are left out. "
            f"{apis if drawn[-1].is_api else 'No API has a comparable price.'}"
        ),
        data=ChartData(tuple(line_points(drawn)), offers[0].price.currency),
        source=f"Times predicted; prices of {day_range(offer.price.as_of for offer in offers)}",
        # Low, because the legend below it has up to eight names.
        height=280,
    )


def _unbeaten_offers(answer: TokenAnswer) -> Iterator[Offered]:
    least = Decimal("Infinity")
    for offer in sorted(answer.offers, key=lambda each: (each.hour, each.capacity.request.mean)):
        if offer.price.reservation:
            continue
        if offer.capacity.request.mean < least:
            least = offer.capacity.request.mean
            yield offer
    yield from (api for api in answer.apis if not api.price.reservation)


def _short_name(offer: Offered) -> str:
    return f"{offer.api.provider} (API)" if isinstance(offer, ApiOffer) else name_of(offer)


def _way(requests: Requests, offer: Offered, name: str) -> Way:
    if isinstance(offer, ApiOffer):
        return Way(one_line(name), (float(offer.per_million),) * len(RATES), is_api=True)
    request, tokens = offer.capacity.request.mean, Decimal(requests.tokens)
    with exact_arithmetic():
        numbers = [(rate, machines_for(rate, request)) for rate in RATES]
        exact = [rented_per_million(offer.hour, count, rate, tokens) for rate, count in numbers]
    return Way(one_line(name), tuple(map(float, exact)))


def drawn_ways(ways: Sequence[Way]) -> list[Way]:
    """The machines that are the cheapest at some request rate, and then the cheapest APIs."""
    apis = _differently_priced_apis([way for way in ways if way.is_api])
    return [*_cheapest_machines(ways), *apis[:_MOST_APIS]]


def finding(ways: Sequence[Way], turn: BreakEven | None = None) -> str:
    """State the cheapest machine or API at low and high load, without a full stop.

    High load means the twelve highest rates, because costs jump with each additional machine. If an
    API is the cheapest at the lowest rate, the sentence states the rate of ``turn``, if any.
    """
    cheapest = [min(ways, key=lambda way: way.costs[at]).name for at in range(len(RATES))]
    first, high = cheapest[0], cheapest[-_HIGH:]
    last = max(dict.fromkeys(high), key=high.count)
    turns = [at for at, (before, name) in enumerate(pairwise(cheapest), 1) if before != name]
    begin = render_per_second(RATES[turns[0]]) if turns else ""
    if turn and any(way.is_api and way.name == first for way in ways):
        begin = render_per_second(turn.per_second)
        # The machine may cost less only between two of the rates.
        if not turns or not turn.saves:
            name = one_line(name_of(turn.offer))
            until = f"{first} costs least up to {begin} requests/s"
            end = "" if last in {first, name} else f", {last} least at high load"
            compared = turn.comparison.rpartition(" ")[0]  # without "than" or "as"
            return f"{until}; above, {name} {compared}{end}"
    if not turns:
        return f"{first} costs least at every load"
    second = cheapest[turns[0]]
    if last == first:
        return f"{first} costs least at most loads; near {begin} requests/s, {second} costs less"
    until = f"{first} costs least up to {begin} requests/s"
    return (
        f"{until}, {second} {'' if len(turns) == 1 else 'at most loads '}above"
        if last == second
        else (f"{until}, then {second}, {last} at high load")
    )


def _cheapest_machines(ways: Sequence[Way]) -> list[Way]:
    machines = [way for way in ways if not way.is_api]
    wins = [min(machines, key=lambda way: way.costs[at]) for at in range(len(RATES)) if machines]
    drawn: list[Way] = []
    for way in sorted(dict.fromkeys(wins), key=wins.count, reverse=True):
        if len(drawn) < _MOST_MACHINES and way.wins_over(drawn):
            drawn.append(way)
    return drawn


def _differently_priced_apis(apis: Sequence[Way]) -> list[Way]:
    distinct: list[Way] = []
    for api in sorted(apis, key=lambda way: way.costs[0]):
        if not distinct or api.costs[0] > (1 + _ALIKE) * distinct[-1].costs[0]:
            distinct.append(api)
    return distinct


def line_points(ways: Sequence[Way]) -> Iterator[LoadCost]:
    """Yield the points of each line in the order of the lines' ends, dearest first."""
    for way in sorted(ways, key=lambda way: -way.costs[-1]):
        for rate, cost in zip(RATES, way.costs, strict=True):
            yield LoadCost(way.name, float(rate), cost, way.is_api)
