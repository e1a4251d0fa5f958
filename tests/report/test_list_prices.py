"""The price of an hour of a machine."""

from __future__ import annotations

from decimal import Decimal

from epochcost.report.list_prices import hourly
from epochcost.specs.price import Price
from price_plans import owned


def test_an_hour_beyond_all_money_is_unknown() -> None:
    """An hourly price beyond the largest allowed amount is unknown."""
    plan = owned(utilisation="1e-15", years="1e-15")
    assert plan.owned is not None
    dear = plan.owned.model_copy(update={"purchase": Decimal(10**15)})
    plan = Price.model_validate({**dict(plan), "owned": dear})
    assert hourly(plan) is None
    assert hourly(plan, vcpus=1) is None
    assert hourly(owned()) == hourly(owned(), vcpus=1)
    assert hourly(owned(per_vcpu=True)) is None
