"""Charts of a decoder: tokens by traffic, waiting behind an engine, and latency by throughput."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from epochcost.analysis.phases import TimedDecoder
from epochcost.analysis.serving import ServedDecoder
from epochcost.analysis.tokens import Requests, ServingOffer, api_per_million, at_rate, capacities
from epochcost.cost import Estimate
from epochcost.report.charts import axes, theme
from epochcost.report.charts.data import ChartData, Ends, Shown
from epochcost.report.charts.figure import Chart, Figure, ends
from epochcost.report.escape import one_line
from epochcost.specs.price import ApiPrice

# Shares of what one machine does at most, beyond which a second one begins.
_SHARES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 0.9999)


@dataclass(frozen=True, slots=True)
class RateCost:
    """The cost of a million tokens at a rate, by one way to serve them."""

    way: Annotated[str, Shown("Way")]
    requests_per_second: Annotated[float, Shown("Requests/s", "number")]
    cost: Annotated[float, Shown("A million tokens", "money")]


@dataclass(frozen=True)
class ByRate(Chart[RateCost]):
    """A line for each way on two log axes; those of APIs are level."""

    long_names = True
    summary = "Cost of a million tokens by the rate of requests."

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
    offers: Sequence[ServingOffer], apis: Sequence[ApiPrice], requests: Requests, *, identifier: str
) -> Figure | None:
    """Draw the cheapest plan of each machine and precision, up to a machine's capacity."""
    first = {offer.deployment: offer for offer in reversed(offers)}
    rows = [row for offer in first.values() for row in _of_offer(offer, requests)]
    if not rows:
        return None
    rates = [row.requests_per_second for row in rows]
    rows += [
        RateCost(one_line(f"API: {api.provider}"), rate, float(api_per_million(api, requests)))
        for api in apis
        for rate in (min(rates), max(rates))
    ]
    return Figure(
        id=identifier,
        title="Cost by traffic",
        description=(
            f"Requests of {requests.prompt:,} tokens read and {requests.output:,} written, on one "
            "machine that is kept all month; a line ends at what the machine does at most."
        ),
        chart=ByRate(ChartData(tuple(rows), offers[0].price.currency)),
    )


def _of_offer(offer: ServingOffer, requests: Requests) -> Iterator[RateCost]:
    most = offer.capacity.per_second
    way = one_line(f"{offer.deployment.precision}, {offer.deployment.machine.name}")
    for share in _SHARES:
        rate = float(most) * share
        cost = at_rate(offer, requests, rate)
        if isinstance(cost, Estimate):
            yield RateCost(way, rate, float(cost.mean))


# By field: its words and dash.
_PERCENTILES: dict[str, tuple[str, list[int]]] = {
    "first_p50": ("median", [1, 0]),
    "first_p90": ("90 % below", [6, 3]),
}


@dataclass(frozen=True, slots=True)
class AskedRate:
    """Waiting times at one rate of requests."""

    way: Annotated[str, Shown("Precision and machine")]
    requests_per_second: Annotated[float, Shown("Requests/s", "number")]
    first_p50: Annotated[float, Shown("First token, median", "seconds")]
    first_p90: Annotated[float, Shown("First token, 90 % below", "seconds")]


@dataclass(frozen=True)
class WaitingChart(Chart[AskedRate]):
    """A line for each way (colour) and percentile (dash); ``bounds`` are in seconds."""

    bounds: tuple[float, ...]
    summary = "Time to the first token by the rate of requests."

    def layers(self, alt: Any) -> list[Any]:
        """A rule for each bound, then lines and points of both percentiles."""
        domain = axes.log_domain([*self.data.values_of(*_PERCENTILES), *self.bounds])
        ticks, label = axes.time_ticks(domain), axes.SECONDS_LABEL
        y = axes.log_scaled(alt.Y, "seconds", domain, "time to the first token", ticks, label)
        words, dashes = map(list, zip(*_PERCENTILES.values(), strict=True))
        names = dict(zip(_PERCENTILES, words, strict=True))
        values = self.data.fold(names, "percentile", "seconds")
        base = alt.Chart(alt.Data(values=values)).encode(
            x=axes.log_axis(alt.X, self.data, "requests_per_second", "requests per second"),
            y=y,
            color=theme.colour_by(alt, self.data, "way"),
        )
        bounds = alt.Chart(alt.Data(values=[{"seconds": bound} for bound in self.bounds]))
        dash = alt.Scale(domain=words, range=dashes)
        return [
            bounds.mark_rule(strokeDash=[4, 4], color="var(--ec-ink)").encode(y=y),
            base.mark_line(strokeWidth=2).encode(
                strokeDash=alt.StrokeDash("percentile:N", scale=dash, title="first token")
            ),
            base.mark_point(filled=True, size=50).encode(
                shape=theme.shape_by(alt, self.data, "way"), tooltip=self.data.tooltips(alt)
            ),
        ]


def waiting_chart(served: Sequence[ServedDecoder], *, identifier: str) -> Figure | None:
    """Every rate at which a decoder was asked behind an engine; None where none was."""
    rates = tuple(rate for decoder in served for rate in _rates(decoder))
    if not rates:
        return None
    alike = len({decoder.requests.lengths_words for decoder in served}) == 1
    bounds = sorted({decoder.requests.first_token_ms / 1e3 for decoder in served})
    return Figure(
        id=identifier,
        title="Waiting for the first token",
        description=(
            "From a request's arrival to its first token, by LoadGen's percentiles; a dashed "
            "rule is a bound whose highest rate was searched for."
            + ("" if alike else " Not all requests are equally long: the table says how long.")
        ),
        chart=WaitingChart(ChartData(rates), tuple(bounds)),
    )


def _rates(decoder: ServedDecoder) -> Iterator[AskedRate]:
    for rate in decoder.rates:
        median, most = rate.first_seconds(50), rate.first_seconds(90)
        if median is not None and most is not None:
            way = one_line(f"{decoder.precision}, {decoder.machine.name}")
            yield AskedRate(way, float(rate.per_second), median, most)


_INK = "var(--ec-ink)"


@dataclass(frozen=True, slots=True)
class Pace:
    """A machine's rate and token time with so many sequences in work."""

    way: Annotated[str, Shown("Way")]
    sequences: Annotated[int, Shown("Sequences at once", "number")]
    tokens_per_second: Annotated[float, Shown("Tokens written/s", "number")]
    token_time: Annotated[Ends, Shown("Between two tokens", "seconds")]


@dataclass(frozen=True)
class PaceChart(Chart[Pace]):
    """A line for each way from few sequences to many; ``bound`` is what a token may take."""

    bound: float | None = None
    long_names = True
    summary = "Time between two tokens by tokens per second."

    def layers(self, alt: Any) -> list[Any]:
        """Lines and points with their numbers of sequences, and the bound."""
        bounds = [] if self.bound is None else [self.bound]
        x = axes.log_axis(alt.X, self.data, "tokens_per_second", "tokens written per second")
        y = axes.log_axis(alt.Y, self.data, "token_time", "between two tokens", also=bounds)
        plain = self.marks(alt).encode(x=x, y=y)
        base = plain.encode(color=theme.colour_by(alt, self.data, "way"))
        numbers = plain.encode(text="sequences:Q")
        rule = alt.Chart(alt.Data(values=[{"token_time": bound} for bound in bounds]))
        drawn = [rule.mark_rule(strokeDash=[4, 4], color=_INK).encode(y=y)] if bounds else []
        look = {"dy": -12, "fontSize": 12}
        return [
            *drawn,
            base.mark_line(strokeWidth=2),
            base.mark_point(filled=True, size=60).encode(
                shape=theme.shape_by(alt, self.data, "way"), tooltip=self.data.tooltips(alt)
            ),
            numbers.mark_text(**look, stroke="var(--ec-paper)", strokeWidth=4),
            numbers.mark_text(**look, color=_INK),
        ]


def pace_chart(
    timed: Sequence[TimedDecoder], requests: Requests, *, identifier: str
) -> Figure | None:
    """Every machine and precision at every number of sequences; None where none was timed."""
    rows = tuple(row for decoder in timed for row in _paces(decoder, requests))
    if not rows:
        return None
    bound = requests.token_seconds
    sentence = "" if bound is None else " The dashed line is the longest that a token may take."
    return Figure(
        id=identifier,
        title="Latency vs. throughput",
        description=(
            f"For requests of {requests.prompt:,} tokens read and {requests.output:,} written, at "
            "the most that the machine does; numbers are the sequences in work at once." + sentence
        ),
        chart=PaceChart(ChartData(rows), bound=None if bound is None else float(bound)),
    )


def _paces(decoder: TimedDecoder, requests: Requests) -> Iterator[Pace]:
    for capacity in capacities(decoder, requests):
        yield Pace(
            way=one_line(f"{decoder.precision}, {decoder.machine.name}"),
            sequences=capacity.sequences,
            tokens_per_second=float(capacity.per_second * requests.output),
            token_time=ends(capacity.token),
        )
