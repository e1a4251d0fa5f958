"""What billing in steps adds to short jobs: the price paid over the price of the time used."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from epochcost.cost import billed_seconds
from epochcost.report.charts import axes, theme
from epochcost.report.charts.figure import Figure
from epochcost.report.escape import one_line
from epochcost.report.tables import Column, Table
from epochcost.report.wording import billing_words, counted
from epochcost.specs.price import Price
from epochcost.specs.terms import Billing
from epochcost.units import plain

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
            x=_duration_axis(alt, chart),
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


def _duration_axis(alt: Any, chart: BillingSteps) -> Any:
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


_MINUTE, _DAY = Decimal(60), Decimal(86400)
# The durations that the table lists; those just past an hour show what the next step costs.
_LISTED = (*(_MINUTE * n for n in (1, 5, 10, 11, 30, 60, 61, 90, 120, 121, 240)), _DAY)
_SHORTEST = Decimal(10)
_SAMPLES = 60
# So many steps are drawn one by one; of longer jobs the line shows the dearest second of a step.
_EDGES = 24
_JUST = Decimal("0.001")
Rule = tuple[Billing, Decimal]


def billing_steps(prices: Iterable[Price], *, identifier: str) -> Figure | None:
    """A line for each way of billing among the prices; None without a rented one."""
    providers: defaultdict[Rule, Counter[str]] = defaultdict(Counter)
    for price in prices:
        if price.owned is None:
            providers[_rule(price)][one_line(price.provider)] += 1
    if not providers:
        return None
    rules = {_words(rule): rule for rule in sorted(providers, key=_order)}
    points = tuple(
        BilledPoint(words, float(seconds), float(_factor(rule, seconds)))
        for words, rule in rules.items()
        for seconds in _durations(rule)
    )
    return Figure(
        id=identifier,
        title="Effective price by duration",
        description=(
            "How many times its list price an hour costs in a job of that duration, because use is "
            "billed in steps, with a minimum, or from the start-up on. At 1 only use is paid. "
            f"After the first {_EDGES} steps a line shows the dearest second of each."
        ),
        chart=BillingSteps(tuple(rules), points),
        table=_table(rules, providers),
    )


def _rule(price: Price) -> Rule:
    return price.billing_rule, price.start.seconds if price.start.billed else Decimal(0)


def _order(rule: Rule) -> tuple[Decimal, ...]:
    """The one that adds most to a minute first."""
    return -_factor(rule, _MINUTE), rule[0].increment_seconds, rule[1]


def _words(rule: Rule) -> str:
    billing, start = rule
    words = billing_words(billing)
    return f"{words}, with {plain(start)} s of start-up" if start else words


def _factor(rule: Rule, seconds: Decimal) -> Decimal:
    billing, start = rule
    return billed_seconds(start + seconds, billing) / seconds


def _durations(rule: Rule) -> list[Decimal]:
    """From ten seconds to a day: evenly on a log axis, and both sides of the first steps."""
    billing, start = rule
    step = billing.increment_seconds
    last = max(step * _EDGES, billing.minimum_seconds)
    edges = [step * at - start for at in range(1, _EDGES + 1)] if step else []
    edges = [edge for edge in edges if edge >= billing.minimum_seconds]
    found = {_SHORTEST, billing.minimum_seconds, billing.minimum_seconds + _JUST}
    found |= {second for edge in edges for second in (edge, edge + _JUST)}
    for sample in _samples():
        found.add(sample // step * step - start + _JUST if step and sample > last else sample)
    return sorted(one for one in found if _SHORTEST <= one <= _DAY)


def _samples() -> list[Decimal]:
    ratio = float(_DAY / _SHORTEST) ** (1 / (_SAMPLES - 1))
    return [
        Decimal(float(_SHORTEST) * ratio**at).quantize(Decimal("0.1")) for at in range(_SAMPLES)
    ]


def _table(rules: Mapping[str, Rule], providers: Mapping[Rule, Counter[str]]) -> Table:
    columns = (
        Column("billing", "Billing"),
        Column("prices", "Prices billed so"),
        Column("duration_s", "Duration", "seconds"),
        Column("billed_s", "Billed", "seconds"),
        Column("effective_over_list_price", "Effective over list price", "number"),
    )
    rows = tuple(
        (
            words,
            ", ".join(_counted(providers[rule])),
            seconds,
            billed_seconds(rule[1] + seconds, rule[0]),
            _factor(rule, seconds).quantize(_JUST),
        )
        for words, rule in rules.items()
        for seconds in _LISTED
    )
    return Table(columns, rows)


def _counted(providers: Counter[str]) -> list[str]:
    """Each provider with how many of its prices are billed so, the most first."""
    return [f"{name} ({counted(number, 'price')})" for name, number in providers.most_common()]
