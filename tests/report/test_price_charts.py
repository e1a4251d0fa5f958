"""Prices over their dates, and the price of an hour."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

from epochcost.report.charts.figure import Figure
from epochcost.report.charts.prices import price_history
from epochcost.report.list_prices import hourly, owned_hour
from epochcost.specs.price import Price
from price_plans import owned

HOSTILE = "</template><script>alert(1)</script>"


def _price(year: int, amount: str, **more: object) -> Price:
    fields = {"hardware": "box", "plan": "on-demand", "provider": HOSTILE, "source": "a test"}
    dated = {"id": f"box-{year}", "as_of": dt.date(year, 1, 1), "amount": Decimal(amount)}
    return Price.model_validate({**fields, **dated, **more})


def _history(*prices: Price) -> Figure | None:
    return price_history([(HOSTILE, price) for price in prices], identifier="x")


def test_a_plan_needs_two_dates_to_have_a_history() -> None:
    """One date, or prices of other plans and currencies, make no line."""
    first = _price(2020, "1")
    assert _history(first) is None
    assert _history(first, _price(2021, "1", plan="spot")) is None
    assert _history(first, _price(2021, "1", currency="EUR")) is None


def test_a_history_is_in_the_order_of_dates_and_says_what_changed() -> None:
    """Whatever the order of the files."""
    figure = _history(_price(2024, "0.5"), _price(2020, "1"), _price(2022, "0.7"))
    assert figure is not None
    assert [row[-2:] for row in figure.table.rows] == [
        ("2020-01-01", Decimal(1)),
        ("2022-01-01", Decimal("0.7")),
        ("2024-01-01", Decimal("0.5")),
    ]
    assert "1 of 1 plans got cheaper, none dearer" in figure.description
    assert [one["hour"] for one in figure.chart.data.values] == [1, 0.7, 0.5]


def test_lines_that_share_a_colour_differ_by_dash() -> None:
    """There are more plans than colours."""
    prices = [
        (f"machine {at}", _price(year, f"{at + 1}", hardware=f"m{at}"))
        for at in range(10)
        for year in (2020, 2021)
    ]
    figure = price_history(prices, identifier="x")
    assert figure is not None
    scales = figure.chart.spec()["layer"][0]["encoding"]
    colours, dashes = (scales[name]["scale"]["range"] for name in ("color", "strokeDash"))
    drawn = {(colour, tuple(dash)) for colour, dash in zip(colours, dashes, strict=True)}
    assert len(drawn) == 10 > len(set(colours))


def test_an_hour_beyond_all_money_is_unknown() -> None:
    """Each figure of an accepted plan is in its bounds, and the hour that they make is not."""
    plan = owned(utilisation="1e-15", years="1e-15")
    assert plan.owned is not None
    dear = plan.owned.model_copy(update={"purchase": Decimal(10**15)})
    plan = Price.model_validate({**dict(plan), "owned": dear})
    assert owned_hour(plan) is None
    assert hourly(plan) is None
    assert owned_hour(owned()) == hourly(owned())
