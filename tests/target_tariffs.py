"""Targets of engines in tests, at a made-up price."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

from epochcost.fleet.ledger import Tariff
from epochcost.specs.hardware import Hardware
from epochcost.specs.price import Plan, Price
from epochcost.specs.target import Target


def tariff_of(plan: Plan = "on-demand", **keys: object) -> Tariff:
    """The tariff of a target with these keys, at a dollar an hour."""
    target = Target.model_validate({"hardware": "box", "price": "price"} | keys)
    machine = Hardware(id=target.hardware, name="A box", provider="Cloud", source="a test")
    price = Price(
        id=target.price,
        hardware=target.hardware,
        plan=plan,
        provider="Cloud",
        amount=Decimal(1),
        source="a test",
        as_of=dt.date(2026, 11, 1),
    )
    return Tariff(target, machine, price)
