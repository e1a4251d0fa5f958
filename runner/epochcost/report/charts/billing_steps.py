"""What billing in steps adds to short jobs: the price paid over the price of the time used."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any

from epochcost.cost import billed_seconds
from epochcost.report.charts import axes, theme
from epochcost.report.charts.data import ChartData, Shown
from epochcost.report.charts.figure import Chart, Figure
from epochcost.report.escape import one_line
from epochcost.report.tables import Table
from epochcost.report.wording import billing_words, counted
from epochcost.specs.price import Price
from epochcost.specs.terms import Billing
from epochcost.units import plain

_DASHES = ([1, 0], [7, 3], [2, 3], [9, 3, 2, 3])
_MINUTE, _DAY = Decimal(60), Decimal(86400)
# The durations that the table lists; those just past an hour show what the next step costs.
_LISTED = (*(_MINUTE * n for n in (1, 5, 10, 11, 30, 60, 61, 90, 120, 121, 240)), _DAY)
_SHORTEST = Decimal(10)
_SAMPLES = 60
# So many steps are drawn one by one; of longer jobs the line shows the dearest second of a step.
_EDGES = 24
_JUST = Decimal("0.001")
Rule = tuple[Billing, Decimal]


@dataclass(frozen=True, slots=True)
class BilledJob:
    """A job under a rule, which so many ``prices`` have."""

    billing: Annotated[str, Shown("Billing")]
    prices: Annotated[str, Shown("Prices billed so", place="table")]
    duration: Annotated[Decimal, Shown("Duration", "seconds")]
    billed: Annotated[Decimal, Shown("Billed", "seconds", place="table")]
    effective_over_list_price: Annotated[float, Shown("Effective over list price", "number")]


@dataclass(frozen=True)
class BillingSteps(Chart[BilledJob]):
    """A line for each rule, over durations; ``listed`` are the jobs of the table."""

    listed: ChartData[BilledJob]
    height = 300
    summary = "Effective price of an hour over its list price, by the duration of a job."

    def layers(self, alt: Any) -> list[Any]:
        """The lines."""
        rules = list(dict.fromkeys(self.data.of("billing")))
        dash = {"domain": rules, "range": [_DASHES[at % len(_DASHES)] for at in range(len(rules))]}
        picked = alt.selection_point(name="picked", fields=["billing"], bind="legend")
        line = (
            alt.Chart(alt.Data(values=self.data.values))
            .mark_line(strokeWidth=2)
            .encode(
                x=self._durations(alt),
                y=self._factors(alt),
                color=theme.colour_by(alt, self.data, "billing", "billing"),
                strokeDash=alt.StrokeDash("billing:N", scale=dash, title="billing"),
                opacity=theme.faded(alt, picked),
                tooltip=self.data.tooltips(alt),
            )
            .add_params(picked)
        )
        return [line]

    def _durations(self, alt: Any) -> Any:
        seconds = self.data.of("duration")
        domain = min(seconds), max(seconds)
        title, ticks = "duration of the job", axes.time_ticks(domain)
        return axes.log_scaled(alt.X, "duration", domain, title, ticks, axes.SECONDS_LABEL)

    def _factors(self, alt: Any) -> Any:
        field = "effective_over_list_price"
        domain = 1.0, max(1.1, *self.data.of(field))
        title = "effective over list price"
        return axes.log_scaled(alt.Y, field, domain, title, axes.log_ticks(domain))

    def table(self) -> Table:
        """A few round durations; a line has too many to be read."""
        return self.listed.table()


def billing_steps(prices: Iterable[Price], *, identifier: str) -> Figure | None:
    """A line for each way of billing among the prices; None without a rented one."""
    providers: defaultdict[Rule, Counter[str]] = defaultdict(Counter)
    for price in prices:
        if price.owned is None:
            providers[_rule(price)][one_line(price.provider)] += 1
    if not providers:
        return None
    rules = sorted(providers, key=_order)
    drawn = (_job(rule, providers, each) for rule in rules for each in _durations(rule))
    listed = (_job(rule, providers, each) for rule in rules for each in _LISTED)
    return Figure(
        id=identifier,
        title="Effective price by duration",
        description=(
            "How many times its list price an hour costs in a job of that duration, because use is "
            "billed in steps, with a minimum, or from the start-up on. At 1 only use is paid. "
            f"After the first {_EDGES} steps a line shows the dearest second of each."
        ),
        chart=BillingSteps(ChartData(tuple(drawn)), listed=ChartData(tuple(listed))),
    )


def _job(rule: Rule, providers: dict[Rule, Counter[str]], seconds: Decimal) -> BilledJob:
    billing, start = rule
    # Each provider with how many of its prices are billed so, the most first.
    counts = (f"{name} ({counted(n, 'price')})" for name, n in providers[rule].most_common())
    return BilledJob(
        _words(rule),
        ", ".join(counts),
        seconds,
        billed_seconds(start + seconds, billing),
        float(_factor(rule, seconds)),
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
