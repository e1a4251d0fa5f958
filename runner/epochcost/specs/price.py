"""Price plans: what a provider asks for a machine, by which plan, since when, says who."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Tag, model_validator

from epochcost.specs.base import (
    FROM_LIST,
    Bounded,
    Identifier,
    NamedSpec,
    Positive,
    Source,
    Spec,
    Text,
    Unconfirmed,
    distinct,
)
from epochcost.specs.billing import BILLING_RULES, Billing, BillingName
from epochcost.specs.currency import Currency
from epochcost.specs.owned import Owned
from epochcost.specs.terms import (
    Commitment,
    Component,
    Credit,
    Interruptions,
    PriceFile,
    Start,
)

Plan = Literal[
    "on-demand",
    "spot",
    "reserved",
    "committed-use",
    "savings-plan",
    "managed",
    "marketplace",
    "owned",
]
COMMITTED: tuple[Plan, ...] = ("reserved", "committed-use", "savings-plan")


def _name_or_table(value: Any) -> str:
    return "table" if isinstance(value, dict | Billing) else "name"


# The tags make pydantic judge a table as a table and all else as a name: one fault, not one each.
BillingNameOrTable = Annotated[
    Annotated[BillingName, Tag("name")] | Annotated[Billing, Tag("table")],
    Discriminator(_name_or_table),
]


class Range(Spec):
    """The ends between which a declared figure may lie."""

    low: Bounded
    high: Bounded

    @model_validator(mode="after")
    def _low_below_high(self) -> Range:
        if self.low > self.high:
            raise ValueError("should have low at most high")
        return self


class Price(NamedSpec):
    """A price plan of one machine at one date.

    A rented plan has ``amount`` per hour, ``components`` that add up, or a ``commitment``; an owned
    one has the table ``owned``. ``maximum_lifetime_seconds`` is when the provider ends every start.
    ``ranges`` gives, by key such as ``owned.utilisation``, the ends of figures that are uncertain.
    ``valid_until`` is the last day on which the price was asked; ``history`` names a CSV file of
    earlier spot prices. ``assumed`` marks plans whose figures are assumptions and not somebody's
    price list.
    """

    hardware: Identifier
    plan: Plan
    provider: Text
    sku: Text | None = None
    region: Text | None = None
    amount: Positive | None = None
    per: Literal["hour"] = "hour"
    components: Annotated[
        tuple[Component, ...], FROM_LIST, distinct(lambda component: component.label)
    ] = ()
    commitment: Commitment | None = None
    currency: Currency = "USD"
    billing: BillingNameOrTable = "per-second"
    start: Start = Start()
    maximum_lifetime_seconds: Positive | None = None
    interruptions: Interruptions | None = None
    credit: Credit | None = None
    owned: Owned | None = None
    ranges: Mapping[str, Range] = {}
    history: PriceFile | None = None
    assumed: bool = False
    source: Source
    as_of: dt.date
    valid_until: dt.date | None = None
    notes: Text | None = None
    unconfirmed: Unconfirmed = ()

    @model_validator(mode="after")
    def _one_way_to_pay(self) -> Price:
        if (self.plan == "owned") != (self.owned is not None):
            raise ValueError('should have the table [owned] with plan = "owned", and only then')
        if (self.plan in COMMITTED) != (self.commitment is not None):
            raise ValueError(
                "should have the table [commitment] with a reserved, committed-use or savings "
                "plan, and with no other"
            )
        paid = self.amount, self.components or None, self.commitment, self.owned
        if sum(part is not None for part in (self.amount, self.commitment, self.owned)) > 1:
            raise ValueError("should have one of amount, when rented, [commitment], or [owned]")
        if not any(part is not None for part in paid):
            raise ValueError("should have either amount, when rented, or the table [owned]")
        return self

    @model_validator(mode="after")
    def _terms_of_rent(self) -> Price:
        if self.owned is not None and (self.interruptions or self.credit or self.components):
            raise ValueError("should have no components, interruptions or credit with [owned]")
        if self.valid_until is not None and self.valid_until < self.as_of:
            raise ValueError("should have valid_until on or after as_of")
        return self

    @property
    def billing_rule(self) -> Billing:
        """The rule itself, whether the spec names it or spells it out."""
        return self.billing if isinstance(self.billing, Billing) else BILLING_RULES[self.billing]
