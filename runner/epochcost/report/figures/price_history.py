"""The figure of a provider's prices over their dates."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from decimal import Decimal

from epochcost.report.charts.figure import Figure
from epochcost.report.charts.price_history import DatedPrice, PriceHistory
from epochcost.report.escape import one_line
from epochcost.report.figures.dots import hourly
from epochcost.report.figures.parts import MACHINE, PLAN, symbol
from epochcost.report.tables import Column, Table
from epochcost.specs.price import Price

_CURRENCY = "USD"


def price_history(prices: Sequence[tuple[str, Price]], *, identifier: str) -> Figure | None:
    """Each plan that has a price at two dates or more, by (machine's name, price); else None."""
    found = _dated(prices)
    if not found:
        return None
    latest = {plan: dated[-1][2] for plan, dated in found.items()}
    plans = tuple(sorted(found, key=lambda plan: (-latest[plan], plan)))
    chart = PriceHistory(
        symbol(_CURRENCY),
        plans,
        tuple(
            DatedPrice(plan, f"{price.as_of}", float(hour))
            for plan in plans
            for _, price, hour in found[plan]
        ),
    )
    return Figure(
        id=identifier,
        title="Price of an hour over time",
        description=_words(found),
        chart=chart,
        table=_table([one for plan in plans for one in found[plan]]),
    )


def _dated(
    prices: Sequence[tuple[str, Price]],
) -> dict[str, list[tuple[str, Price, Decimal]]]:
    """By plan its prices in US dollars at two dates or more, the earliest first."""
    groups: defaultdict[str, list[tuple[str, Price, Decimal]]] = defaultdict(list)
    for machine, price in prices:
        hour = hourly(price) if price.currency == _CURRENCY else None
        if hour is not None:
            groups[f"{one_line(machine)}, {price.plan}"].append((one_line(machine), price, hour))
    return {
        plan: sorted(dated, key=lambda one: (one[1].as_of, one[1].id))
        for plan, dated in groups.items()
        if len({price.as_of for _, price, _ in dated}) > 1
    }


def _words(found: dict[str, list[tuple[str, Price, Decimal]]]) -> str:
    """What changed, for who cannot see it."""
    ends = [(dated[0][2], dated[-1][2]) for dated in found.values()]
    fell = sum(last < first for first, last in ends)
    rose = sum(last > first for first, last in ends)
    return (
        f"From the first date to the last {fell} of {len(ends)} plans became cheaper, {rose} "
        f"dearer and {len(ends) - fell - rose} neither. A point is a date at which a source states "
        "the price; between two of them it may have moved."
    )


def _table(dated: Sequence[tuple[str, Price, Decimal]]) -> Table:
    columns = (MACHINE, PLAN, Column("region", "Region"), Column("as_of", "Date"))
    hour = Column(f"hour_{_CURRENCY}", "One hour", "money", currency=_CURRENCY)
    return Table(
        (*columns, hour),
        tuple((name, one.plan, one.region, str(one.as_of), cost) for name, one, cost in dated),
    )
