"""What billing in steps adds to short jobs: the price paid over the price of the time used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from epochcost.report.charts import axes, theme

_HEIGHT = 300
_DASHES = ([1, 0], [7, 3], [2, 3], [9, 3, 2, 3])


@dataclass(frozen=True, slots=True)
class BilledPoint:
    """A job of so many seconds under a rule costs ``factor`` times what its seconds alone would."""

    rule: str
    seconds: float
    factor: float


@dataclass(frozen=True)
class BillingSteps:
    """The chart's input; ``rules`` in the order of the legend."""

    rules: tuple[str, ...]
    points: tuple[BilledPoint, ...]

    def spec(self) -> dict[str, Any]:
        """A line for each rule, over durations."""
        import altair as alt  # noqa: PLC0415  a cached drawing needs no Altair

        layers = _layers(alt, self)
        words = "Effective price of an hour over its list price, by the duration of a job."
        return theme.finished(layers, _HEIGHT, words)


def _layers(alt: Any, chart: BillingSteps) -> list[Any]:
    data = alt.Data(
        values=[{"rule": p.rule, "seconds": p.seconds, "factor": p.factor} for p in chart.points]
    )
    scale = theme.series_scale({rule: at for at, rule in enumerate(chart.rules)}, chart.rules)
    dashes = [_DASHES[chart.rules.index(rule) % len(_DASHES)] for rule in scale["domain"]]
    picked = alt.selection_point(name="picked", fields=["rule"], bind="legend")
    line = (
        alt.Chart(data)
        .mark_line(strokeWidth=2)
        .encode(
            x=_durations(alt, chart),
            y=_factors(alt, chart),
            color=alt.Color("rule:N", scale=alt.Scale(**scale), title="billing"),
            strokeDash=alt.StrokeDash(
                "rule:N", scale=alt.Scale(domain=scale["domain"], range=dashes), title="billing"
            ),
            opacity=theme.faded(alt, picked),
            tooltip=[
                alt.Tooltip("rule:N", title="billing"),
                alt.Tooltip("seconds:Q", title="duration in s", format=",.4~r"),
                alt.Tooltip("factor:Q", title="times the list price", format=".3~r"),
            ],
        )
        .add_params(picked)
    )
    return [line]


def _durations(alt: Any, chart: BillingSteps) -> Any:
    seconds = [point.seconds for point in chart.points]
    domain = (min(seconds), max(seconds))
    return alt.X(
        "seconds:Q",
        scale=alt.Scale(type="log", domain=domain, nice=False),
        axis=alt.Axis(values=axes.time_ticks(domain), labelExpr=axes.SECONDS_LABEL),
        title="duration of the job (log scale)",
    )


def _factors(alt: Any, chart: BillingSteps) -> Any:
    domain = (1.0, max(1.1, *(point.factor for point in chart.points)))
    return alt.Y(
        "factor:Q",
        scale=alt.Scale(type="log", domain=domain, nice=False),
        axis=alt.Axis(values=axes.log_ticks(domain), labelExpr=axes.COUNT_LABEL),
        title="effective over list price (log scale)",
    )
