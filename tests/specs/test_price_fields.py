"""Figures of a plan by key path are read, replaced and validated again."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from epochcost.specs.price import Price, value_at, with_value
from epochcost.units import today
from price_plans import owned, plan, rented

GPU = {"label": "GPU", "amount": Decimal("0.70")}
YEAR = {"term_months": Decimal(12), "payment": "no-upfront", "hourly": Decimal(1)}
SPOT = plan(
    plan="spot",
    amount=Decimal("0.06"),
    components=[GPU, {"label": "Skylake", "percent": Decimal("6.07"), "of": ["compute"]}],
    start={"seconds": Decimal(60)},
    interruptions={"rate_per_hour": Decimal("0.05")},
    maximum_lifetime_seconds=Decimal(86_400),
    credit={"amount": Decimal(300)},
)


@pytest.mark.parametrize(
    ("price", "path"),
    [
        (SPOT, "amount"),
        (SPOT, "components[0].amount"),
        (SPOT, "components[1].percent"),
        (SPOT, "start.failure_probability"),
        (SPOT, "interruptions.rate_per_hour"),
        (SPOT, "maximum_lifetime_seconds"),
        (SPOT, "credit.amount"),
        (SPOT, "billing.minimum_seconds"),
        (owned(), "owned.utilisation"),
        (owned(), "owned.electricity_per_kwh"),
        (plan(plan="reserved", commitment=YEAR), "commitment.utilisation"),
    ],
)
def test_every_figure_can_be_replaced(price: Price, path: str) -> None:
    """The new plan differs in the replaced figure only, and the old plan is unchanged."""
    before = value_at(price, path)
    after = (before + 1) / 2 if before else Decimal("0.5")
    changed = with_value(price, path, after)
    assert value_at(changed, path) == after
    assert value_at(price, path) == before
    assert with_value(changed, path, before).billing_rule == price.billing_rule
    if not path.startswith("billing"):
        assert with_value(changed, path, before) == price


def test_what_keeps_a_price_from_being_the_answer() -> None:
    """Ended offers, assumptions, commitments and spot without a rate have a reservation."""
    term = {"term_months": Decimal(12), "payment": "no-upfront", "hourly": Decimal("0.5")}
    committed = plan(plan="committed-use", commitment=term)
    assert rented().reservation == ""
    assert owned().reservation == "its price is assumed"
    spot = plan(plan="spot", amount=Decimal("0.1"))
    assert spot.reservation == "not known how often it is interrupted"
    assert committed.reservation == "paid for its whole term, used or not"
    ended = plan(amount=Decimal("0.1"), valid_until=dt.date(2025, 4, 28))
    assert ended.reservation == "no longer offered"
    ends_later = plan(amount=Decimal("0.1"), valid_until=today() + dt.timedelta(days=1))
    assert ends_later.reservation == ""
    assert (committed.plan_text, rented().plan_text) == ("committed-use, 12 months", "on-demand")
    month = plan(plan="committed-use", commitment={**term, "term_months": Decimal(1)})
    assert month.plan_text == "committed-use, 1 month"


@pytest.mark.parametrize(
    ("provider", "named"),
    [("own", ("owned",)), ("owned", ("owned",)), ("our rack", ("our rack", "owned"))],
)
def test_an_owner_is_not_named_beside_the_plan(provider: str, named: tuple[str, ...]) -> None:
    """The provider of an owned machine is left out if it only repeats the plan."""
    price = owned().model_copy(update={"provider": provider})
    assert price.provider_and_plan == named
