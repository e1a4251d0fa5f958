"""Price plans: what a provider asks for a machine, by which plan, since when, says who."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from epochcost.specs.base import (
    Identifier,
    NamedSpec,
    NonNegative,
    Positive,
    Share,
    Source,
    Spec,
    Text,
    Unconfirmed,
    matching,
)
from epochcost.specs.billing import BILLING_RULES, Billing, BillingName

Plan = Literal["on-demand", "spot", "owned"]
Currency = Annotated[str, matching(r"[A-Z]{3}", "a currency of three capitals, such as USD")]


def _name_or_table(value: Any) -> str:
    return "table" if isinstance(value, dict | Billing) else "name"


# The tags make pydantic judge a table as a table and all else as a name: one fault, not one each.
BillingNameOrTable = Annotated[
    Annotated[BillingName, Tag("name")] | Annotated[Billing, Tag("table")],
    Discriminator(_name_or_table),
]


class Owned(Spec):
    """What an owned machine costs, so that an hour of use has a price.

    Amounts are in the plan's currency; ``per_vcpu`` multiplies purchase, residual and power by
    the machine's vCPUs, for a machine whose make is not known. ``utilisation`` is the share of its
    life in use; ``power_watts`` is drawn while in use, before ``pue``.
    """

    purchase: Positive
    residual: NonNegative = Decimal(0)
    years: Positive
    utilisation: Annotated[Share, Field(gt=0)]
    power_watts: Positive
    pue: Annotated[Positive, Field(ge=1)] = Decimal(1)
    electricity_per_kwh: NonNegative
    per_vcpu: bool = False

    @model_validator(mode="after")
    def _residual_below_purchase(self) -> Owned:
        if self.residual > self.purchase:
            raise ValueError("should have residual at most purchase")
        return self


class Price(NamedSpec):
    """A price plan of one machine at one date.

    A rented plan has ``amount`` per hour and ``billing``; an owned one has the table ``owned``.
    ``assumed`` marks plans whose figures are assumptions and not somebody's price list.
    """

    hardware: Identifier
    plan: Plan
    provider: Text
    sku: Text | None = None
    region: Text | None = None
    amount: Positive | None = None
    per: Literal["hour"] = "hour"
    currency: Currency = "USD"
    billing: BillingNameOrTable = "per-second"
    owned: Owned | None = None
    assumed: bool = False
    source: Source
    as_of: dt.date
    notes: Text | None = None
    unconfirmed: Unconfirmed = ()

    @model_validator(mode="after")
    def _amount_or_owned(self) -> Price:
        if (self.plan == "owned") != (self.owned is not None):
            raise ValueError('should have the table [owned] with plan = "owned", and only then')
        if (self.amount is None) == (self.owned is None):
            raise ValueError("should have either amount, when rented, or the table [owned]")
        return self

    @property
    def billing_rule(self) -> Billing:
        """The rule itself, whether the spec names it or spells it out."""
        return self.billing if isinstance(self.billing, Billing) else BILLING_RULES[self.billing]
