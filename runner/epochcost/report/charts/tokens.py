"""What a million tokens cost by the rate of requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from epochcost.analysis.tokens import Requests, ServingOffer, api_per_million, at_rate
from epochcost.cost import Estimate
from epochcost.report.charts import axes, theme
from epochcost.report.charts.data import ChartData, Shown
from epochcost.report.charts.figure import Chart, Figure
from epochcost.report.escape import one_line
from epochcost.specs.api import ApiPrice

# Shares of what one machine does at most, beyond which a second one begins.
_SHARES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 0.9999)


@dataclass(frozen=True, slots=True)
class RateCost:
    """What a million tokens cost at a rate, by one way to serve them."""

    way: Annotated[str, Shown("Way")]
    requests_per_second: Annotated[float, Shown("Requests/s", "number")]
    cost: Annotated[float, Shown("A million tokens", "money")]


@dataclass(frozen=True)
class ByRate(Chart[RateCost]):
    """A line for each way on two log axes; those of APIs are level."""

    long_names = True
    summary = "Cost of a million tokens by the rate of requests."
    picks = "way"

    def layers(self, alt: Any) -> list[Any]:
        """Lines, and points for tooltips."""
        base = self.marks(alt).encode(
            x=axes.log_axis(alt.X, self.data, "requests_per_second", "requests per second"),
            y=axes.log_axis(alt.Y, self.data, "cost", "cost of a million tokens"),
            color=theme.colour_by(alt, self.data, "way"),
        )
        return [
            base.mark_line(strokeWidth=2),
            base.mark_point(filled=True, size=30).encode(
                shape=theme.shape_by(alt, self.data, "way"), tooltip=self.data.tooltips(alt)
            ),
        ]


def cost_by_rate(
    offers: Sequence[ServingOffer], apis: Sequence[ApiPrice], asked: Requests, *, identifier: str
) -> Figure | None:
    """Of the cheapest plan of each machine and precision, up to what one machine does."""
    first = {(one.decoder.machine, one.decoder.precision): one for one in reversed(offers)}
    rows = [row for one in first.values() for row in _of_offer(one, asked)]
    if not rows:
        return None
    rates = [row.requests_per_second for row in rows]
    rows += [
        RateCost(one_line(f"API: {api.provider}"), rate, float(api_per_million(api, asked)))
        for api in apis
        for rate in (min(rates), max(rates))
    ]
    return Figure(
        id=identifier,
        title="Cost by traffic",
        description=(
            f"Requests of {asked.prompt:,} tokens read and {asked.output:,} written, on one "
            "machine that is kept all month; a line ends at what the machine does at most."
        ),
        chart=ByRate(ChartData(tuple(rows), offers[0].price.currency)),
    )


def _of_offer(offer: ServingOffer, asked: Requests) -> Iterator[RateCost]:
    most = offer.capacity.per_second
    way = one_line(f"{offer.decoder.precision}, {offer.decoder.machine.name}")
    for share in _SHARES:
        rate = float(most) * share
        cost = at_rate(offer, asked, rate)
        if isinstance(cost, Estimate):
            yield RateCost(way, rate, float(cost.mean))
