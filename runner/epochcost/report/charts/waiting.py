"""Chart a decoder behind an engine: the time to the first token by the rate of requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from epochcost.analysis.serving import ServedDecoder
from epochcost.report.charts import axes, theme
from epochcost.report.charts.data import ChartData, Shown
from epochcost.report.charts.figure import LEAST_POINTS, Chart, Figure, day_range
from epochcost.report.escape import one_line
from epochcost.units import seconds

# By field: its label and dash.
_PERCENTILES: dict[str, tuple[str, list[int]]] = {
    "first_p50": ("median", [1, 0]),
    "first_p90": ("90 % below", [6, 3]),
}


@dataclass(frozen=True, slots=True)
class AskedRate:
    """Times to the first token at one rate of requests."""

    way: Annotated[str, Shown("Precision and machine")]
    requests_per_second: Annotated[float, Shown("Requests/s", "number")]
    first_p50: Annotated[float, Shown("First token, median", "seconds")]
    first_p90: Annotated[float, Shown("First token, 90 % below", "seconds")]


@dataclass(frozen=True)
class WaitingChart(Chart[AskedRate]):
    """Chart a line for each machine and precision (by colour) and percentile (by dashes).

    ``bounds`` are the longest allowed times to the first token, in seconds.
    """

    bounds: tuple[float, ...]
    summary = "Time to the first token by the rate of requests."

    def layers(self, alt: Any) -> list[Any]:
        """A straight line for each bound, then lines and points of both percentiles."""
        domain = axes.log_domain([*self.data.values_of(*_PERCENTILES), *self.bounds])
        y = axes.log_scaled(alt.Y, "seconds", domain, "time to the first token", "seconds")
        labels, dashes = map(list, zip(*_PERCENTILES.values(), strict=True))
        values = [
            {**row, "percentile": label, "seconds": row[field]}
            for row in self.data.values
            for field, (label, _) in _PERCENTILES.items()
        ]
        base = alt.Chart(alt.Data(values=values)).encode(
            x=axes.log_axis(alt.X, self.data, "requests_per_second", "requests per second"),
            y=y,
            color=theme.colour_by(alt, self.data, "way"),
        )
        bounds = alt.Chart(alt.Data(values=[{"seconds": bound} for bound in self.bounds]))
        dash = alt.Scale(domain=labels, range=dashes)
        return [
            bounds.mark_rule(strokeDash=[4, 4], color="var(--ec-ink)").encode(y=y),
            base.mark_line(strokeWidth=2).encode(
                strokeDash=alt.StrokeDash("percentile:N", scale=dash, title="first token")
            ),
            self.data.with_tooltips(
                alt,
                base.mark_point(filled=True, size=50).encode(
                    shape=theme.shape_by(alt, self.data, "way")
                ),
            ),
        ]


def waiting_chart(served: Sequence[ServedDecoder], *, identifier: str) -> Figure | None:
    """Chart every measured rate of a decoder; None if there are fewer than three rates."""
    rates = tuple(rate for decoder in served for rate in _rates(decoder))
    if len(set(rates)) < LEAST_POINTS:
        return None
    alone = [rate for rate in rates if rate.way == rates[0].way]
    first, last = (end(alone, key=lambda rate: rate.requests_per_second) for end in (min, max))
    alike = len({decoder.requests.lengths_words for decoder in served}) == 1
    bounds = sorted({decoder.requests.first_token_ms / 1e3 for decoder in served})
    return Figure(
        id=identifier,
        title=(
            f"{rates[0].way}: half of the first tokens come within {seconds(first.first_p50)} at "
            f"{first.requests_per_second:.3g} requests/s, {seconds(last.first_p50)} at "
            f"{last.requests_per_second:.3g}"
        ),
        description=(
            "From a request's arrival to its first token, by LoadGen's percentiles. Dashed "
            "horizontal lines are the bounds that the highest rate has to meet."
            + ("" if alike else " Requests differ in length, as the table shows.")
        ),
        chart=WaitingChart(ChartData(rates), tuple(bounds)),
        source=f"Measured by us {day_range(decoder.date for decoder in served)}",
    )


def _rates(decoder: ServedDecoder) -> Iterator[AskedRate]:
    for rate in decoder.rates:
        median, most = rate.first_seconds(50), rate.first_seconds(90)
        if median is not None and most is not None:
            way = one_line(f"{decoder.precision}, {decoder.machine.name}")
            yield AskedRate(way, float(rate.per_second), median, most)
