"""Charts of prices: of an hour by machine, over their dates, and what billing in steps adds."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, ClassVar

from epochcost.cost import Usage, billed_seconds, share
from epochcost.errors import InputError
from epochcost.report.charts import axes, theme
from epochcost.report.charts.data import ChartData, MachineName, PlanName, Shown
from epochcost.report.charts.figure import Chart, Colours, Figure, colours_of
from epochcost.report.charts.palette import LIGHT_SERIES
from epochcost.report.escape import one_line
from epochcost.report.tables import Table
from epochcost.report.wording import billing_words
from epochcost.specs.price import Price
from epochcost.specs.terms import Billing
from epochcost.units import SECONDS_PER_HOUR, count_words, plain

# Of the first, the second and the third eight lines: colours repeat, dashes do not.
_DASHES = ([1, 0], [7, 3], [2, 3], [9, 3, 2, 3])
_CURRENCY = "USD"
_MINUTE, _DAY = Decimal(60), Decimal(86400)
# The durations that the table lists; those just past an hour show what the next step costs.
_LISTED = (*(_MINUTE * n for n in (1, 5, 10, 11, 30, 60, 61, 90, 120, 121, 240)), _DAY)
_SHORTEST = Decimal(10)
_SAMPLES = 60
# So many steps are drawn one by one; of longer jobs the line shows the dearest second of a step.
_EDGES = 24
_MILLISECOND = Decimal("0.001")


@dataclass(frozen=True, slots=True)
class HourlyPrice:
    """What an hour costs under one plan of a machine."""

    machine: MachineName
    price_plan: PlanName
    figure: Annotated[str, Shown("Price", place="chart")]
    as_of: Annotated[str, Shown("Date")]
    hour: Annotated[Decimal, Shown("One hour", "money")]


@dataclass(frozen=True, slots=True)
class DatedPrice:
    """What an hour costs at a date (ISO 8601) under a plan, whose line is named ``plan``."""

    machine: MachineName
    price_plan: PlanName
    region: Annotated[str | None, Shown("Region")]
    as_of: Annotated[str, Shown("Date", "date")]
    hour: Annotated[Decimal, Shown("One hour", "money")]
    plan: Annotated[str, Shown("Plan", place="chart")]


@dataclass(frozen=True)
class PriceHistory(Chart[DatedPrice]):
    """Steps from date to date, for a price holds until another is read."""

    summary = "Price of one hour over its dates, by plan."
    picks = "plan"

    def layers(self, alt: Any) -> list[Any]:
        """Lines by plan (colour and dash), the first of the legend first, and points."""
        legend = alt.Legend(symbolType="stroke", symbolSize=250)
        plans = list(dict.fromkeys(self.data.values_of("plan")))
        dashes = [_DASHES[at // len(LIGHT_SERIES) % len(_DASHES)] for at in range(len(plans))]
        dash = alt.StrokeDash(
            "plan:N", scale={"domain": plans, "range": dashes}, title="plan", legend=legend
        )
        base = self.marks(alt).encode(
            x=alt.X(
                "as_of:T", title="date of the price", axis=alt.Axis(format="%Y", tickCount="year")
            ),
            y=axes.log_axis(alt.Y, self.data, "hour", "price of one hour"),
            color=theme.colour_by(alt, self.data, "plan", legend=legend),
        )
        return [
            base.mark_line(interpolate="step-after", strokeWidth=2).encode(strokeDash=dash),
            base.mark_point(size=60, filled=True).encode(tooltip=self.data.tooltips(alt)),
        ]


@dataclass(frozen=True)
class HourlyPrices(Chart[HourlyPrice]):
    """A row for each machine over a logarithmic axis."""

    colours: Colours
    summary = "Price of one hour, by machine."
    height: ClassVar = {"step": 28}

    def layers(self, alt: Any) -> list[Any]:
        """The dots."""
        order = list(dict.fromkeys(self.data.values_of("machine")))
        points = self.marks(alt).mark_point(size=110, strokeWidth=2)
        dots = points.encode(
            x=axes.log_axis(alt.X, self.data, "hour", "price of one hour"),
            y=alt.Y("machine:N", sort=order, title=None, axis=alt.Axis(grid=True)),
            color=theme.colour_by(alt, self.data, "machine", self.colours, legend=None),
            shape=theme.shape_by_kind(alt, self.data),
            tooltip=self.data.tooltips(alt),
        )
        return [dots]


def hourly_prices(
    prices: Iterable[tuple[str, Price]], *, identifier: str, colours: Colours
) -> Figure | None:
    """The price of an hour of each machine's plans in US dollars; None below two plans."""
    found = [
        HourlyPrice(one_line(machine), price.plan_words, _price_kind(price), str(price.as_of), hour)
        for machine, price in prices
        if price.currency == "USD" and (hour := hourly(price)) is not None
    ]
    if len(found) < 2:
        return None
    data = ChartData(tuple(sorted(found, key=lambda one: one.hour)))
    return Figure(
        id=identifier,
        title="Price of an hour, by machine",
        description="Current prices, before any billing step; the table has their dates.",
        chart=HourlyPrices(data, colours_of(colours, data)),
    )


def _price_kind(price: Price) -> str:
    if price.assumed:
        return "assumed price"
    return price.plan if price.plan in {"on-demand", "spot"} else "list price"


def price_history(prices: Sequence[tuple[str, Price]], *, identifier: str) -> Figure | None:
    """Each plan that has a price at two dates or more, by (machine's name, price); else None."""
    found = _dated(prices)
    if not found:
        return None
    plans = sorted(found, key=lambda plan: (-found[plan][-1].hour, plan))
    points = tuple(point for plan in plans for point in found[plan])
    return Figure(
        id=identifier,
        title="Price of an hour over time",
        description=_change_words(found),
        chart=PriceHistory(ChartData(points, _CURRENCY)),
    )


def _dated(prices: Sequence[tuple[str, Price]]) -> Mapping[str, list[DatedPrice]]:
    """By plan its prices in US dollars at two dates or more, the earliest first."""
    groups: defaultdict[str, list[DatedPrice]] = defaultdict(list)
    for machine, price in sorted(prices, key=lambda one: (one[1].as_of, one[1].id)):
        hour = hourly(price) if price.currency == _CURRENCY else None
        if hour is not None:
            name = one_line(machine)
            plan = f"{name}, {price.plan}"
            groups[plan].append(
                DatedPrice(name, price.plan, price.region, str(price.as_of), hour, plan)
            )
    return {plan: dated for plan, dated in groups.items() if len({one.as_of for one in dated}) > 1}


def _change_words(found: Mapping[str, list[DatedPrice]]) -> str:
    """What changed, for who cannot see it."""
    ends = [(dated[0].hour, dated[-1].hour) for dated in found.values()]
    fell = sum(last < first for first, last in ends)
    rose = sum(last > first for first, last in ends)
    return (
        f"{fell or 'None'} of {len(ends)} plans got cheaper, {rose or 'none'} dearer. A point "
        "is a date at which a source states the price; between two points it may have changed."
    )


# How use is billed, and the seconds of start-up that are.
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
    picks = "billing"
    summary = "Effective price of an hour over its list price, by the duration of a job."

    def layers(self, alt: Any) -> list[Any]:
        """The lines."""
        rules = list(dict.fromkeys(self.data.values_of("billing")))
        dash = {"domain": rules, "range": [_DASHES[at % len(_DASHES)] for at in range(len(rules))]}
        line = self.marks(alt).mark_line(strokeWidth=2)
        encoded = line.encode(
            x=self._durations(alt),
            y=self._factors(alt),
            color=theme.colour_by(alt, self.data, "billing"),
            strokeDash=alt.StrokeDash("billing:N", scale=dash, title="billing"),
            tooltip=self.data.tooltips(alt),
        )
        return [encoded]

    def _durations(self, alt: Any) -> Any:
        seconds = self.data.values_of("duration")
        domain = min(seconds), max(seconds)
        title, ticks = "duration of the job", axes.time_ticks(domain)
        return axes.log_scaled(alt.X, "duration", domain, title, ticks, axes.SECONDS_LABEL)

    def _factors(self, alt: Any) -> Any:
        field = "effective_over_list_price"
        domain = 1.0, max(1.1, *self.data.values_of(field))
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
            "How many times its list price an hour costs in a job of that duration, as use is "
            "billed in steps, with a minimum, or from start-up. At 1 you pay only for use. "
            f"After the first {_EDGES} steps a line shows the dearest second of each step."
        ),
        chart=BillingSteps(ChartData(tuple(drawn)), listed=ChartData(tuple(listed))),
    )


def _job(rule: Rule, providers: dict[Rule, Counter[str]], seconds: Decimal) -> BilledJob:
    billing, start = rule
    # Each provider with how many of its prices are billed so, the most first.
    counts = (f"{name} ({count_words(n, 'price')})" for name, n in providers[rule].most_common())
    return BilledJob(
        _rule_words(rule),
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


def _rule_words(rule: Rule) -> str:
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
    found = {_SHORTEST, billing.minimum_seconds, billing.minimum_seconds + _MILLISECOND}
    found |= {second for edge in edges for second in (edge, edge + _MILLISECOND)}
    for sample in _samples():
        found.add(
            sample // step * step - start + _MILLISECOND if step and sample > last else sample
        )
    return sorted(one for one in found if _SHORTEST <= one <= _DAY)


def _samples() -> list[Decimal]:
    ratio = float(_DAY / _SHORTEST) ** (1 / (_SAMPLES - 1))
    return [
        Decimal(float(_SHORTEST) * ratio**at).quantize(Decimal("0.1")) for at in range(_SAMPLES)
    ]


def hourly(price: Price) -> Decimal | None:
    """What one hour of use costs; None for a plan per vCPU or per run, which has no hour here."""
    if price.owned is not None and price.owned.per_vcpu:
        return None
    return _hour(price, Usage(Decimal(SECONDS_PER_HOUR)))


def owned_hour(price: Price) -> Decimal | None:
    """What one hour of use of an owned machine costs, of one vCPU where the plan is per vCPU.

    None where the plan's figures make no amount of money.
    """
    return _hour(price, Usage(Decimal(SECONDS_PER_HOUR), vcpus=1))


def _hour(price: Price, usage: Usage) -> Decimal | None:
    try:
        return share(price, usage).total
    except InputError:
        return None
