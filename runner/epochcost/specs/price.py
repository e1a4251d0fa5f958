"""Price plans: what a provider asks for a machine, by which plan, since when, says who."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Tag, ValidationInfo, field_validator, model_validator

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
    COMMITTED,
    COMPUTE,
    Commitment,
    Component,
    Credit,
    Interruptions,
    PriceFile,
    Start,
)
from epochcost.specs.wording import listed, nearest, shown

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
# What every use takes: a plan without a part for either would be free.
_USED = ("hour", "run")
COMMITTED_PLANS: tuple[Plan, ...] = ("reserved", "committed-use", "savings-plan")


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

    A rented plan has ``amount`` per hour or a ``commitment``, and ``components`` that add up with
    it or stand alone; an owned one has the table ``owned``. ``maximum_lifetime_seconds`` is when
    the provider ends every start, counted from when the machine is billed. ``ranges`` gives, by key
    such as ``owned.utilisation`` or ``components[0].amount``, the ends of figures that are
    uncertain. ``valid_until`` is the last day on which the price was asked; ``history`` names a CSV
    file of earlier spot prices. ``assumed`` marks plans whose figures are assumptions and not
    somebody's price list.
    """

    hardware: Identifier
    plan: Plan
    provider: Text
    sku: Text | None = None
    region: Text | None = None
    amount: Positive | None = None
    per: Literal["hour"] = "hour"
    commitment: Commitment | None = None
    components: Annotated[
        tuple[Component, ...], FROM_LIST, distinct(lambda component: component.label)
    ] = ()
    currency: Currency = "USD"
    billing: BillingNameOrTable = "per-second"
    start: Start = Start()
    interruptions: Interruptions | None = None
    maximum_lifetime_seconds: Positive | None = None
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

    @field_validator("components")
    @classmethod
    def _premiums_on_parts(
        cls, components: tuple[Component, ...], info: ValidationInfo
    ) -> tuple[Component, ...]:
        whole = {COMPUTE: info.data.get("amount"), COMMITTED: info.data.get("commitment")}
        names = [name for name, paid in whole.items() if paid is not None]
        if any(component.label in names for component in components):
            raise ValueError(f"should have labels other than {listed(names)}, the part without one")
        names += [part.label for part in components if part.amount and part.per == "hour"]
        for component in components:
            for name in component.of:
                if name not in names:
                    got = f"got {shown(name)}{nearest(name, names)}"
                    raise ValueError(f"should have premiums of hourly parts of this price, {got}")
            if component.percent is not None and not names:
                raise ValueError("should have an hourly part for a premium to be on, got none")
        return components

    @field_validator("maximum_lifetime_seconds")
    @classmethod
    def _time_to_work(cls, lifetime: Decimal | None, info: ValidationInfo) -> Decimal | None:
        start, interruptions = info.data.get("start"), info.data.get("interruptions")
        if lifetime is not None and start is not None:
            begun = start.seconds if start.billed else Decimal(0)
            begun += interruptions.restart_seconds if interruptions else 0
            if lifetime <= begun:
                raise ValueError(f"should be longer than a start and a restart, {begun} s")
        return lifetime

    @model_validator(mode="after")
    def _one_way_to_pay(self) -> Price:
        if (self.plan == "owned") != (self.owned is not None):
            raise ValueError('should have the table [owned] with plan = "owned", and only then')
        if (self.plan in COMMITTED_PLANS) != (self.commitment is not None):
            raise ValueError(
                "should have the table [commitment] with a reserved, committed-use or savings "
                "plan, and with no other"
            )
        whole = [part for part in (self.amount, self.commitment, self.owned) if part is not None]
        if len(whole) > 1:
            raise ValueError("should have one of amount, when rented, [commitment], or [owned]")
        if not (whole or self.components):
            raise ValueError("should have either amount, when rented, or the table [owned]")
        if not (whole or any(part.amount and part.per in _USED for part in self.components)):
            raise ValueError("should have a component per hour or per run, or amount")
        return self

    @model_validator(mode="after")
    def _terms_of_rent(self) -> Price:
        rented = self.interruptions, self.credit, self.components, self.maximum_lifetime_seconds
        if self.owned is not None and (any(rented) or self.start != Start()):
            raise ValueError(
                "should have no components, interruptions, credit, start or "
                "maximum_lifetime_seconds with [owned]"
            )
        if self.valid_until is not None and self.valid_until < self.as_of:
            raise ValueError("should have valid_until on or after as_of")
        return self

    @property
    def billing_rule(self) -> Billing:
        """The rule itself, whether the spec names it or spells it out."""
        return self.billing if isinstance(self.billing, Billing) else BILLING_RULES[self.billing]
