"""Prices of machines with plan, terms, date and source; ``api`` has prices of tokens."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import ValidationInfo, field_validator, model_validator

from epochcost.errors import InputError
from epochcost.specs.base import (
    Array,
    Bounded,
    Identifier,
    NonNegative,
    Positive,
    PricedSpec,
    Spec,
    Text,
    distinct,
    key,
    optional,
    ordered_keys_of,
)
from epochcost.specs.findings import validated
from epochcost.specs.terms import (
    COMMITTED,
    COMPUTE,
    SUSTAINED_USE,
    Billing,
    BillingNameOrTable,
    Commitment,
    Component,
    Credit,
    Interruptions,
    Owned,
    Start,
    SustainedUseName,
    rule_of,
)
from epochcost.specs.wording import KeyPath, describe, got, join_choices, suggest_or_list
from epochcost.units import price_age, render_count

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


@dataclass(frozen=True, slots=True)
class PlanKind:
    """Properties of a kind of price plan.

    A spec of this kind must have the TOML table ``table``. On the site, readers show or hide a
    ``group`` as a whole. By default, the first ``usual`` kind with a price for the machine is used.
    """

    group: str
    table: Literal["", "commitment", "owned"] = ""
    interruptible: bool = False
    usual: bool = False


# To add a kind of plan, add it here and to `Plan`.
PLAN_KINDS: Mapping[Plan, PlanKind] = {
    "on-demand": PlanKind("on-demand", usual=True),
    "spot": PlanKind("spot", interruptible=True),
    "reserved": PlanKind("committed", table="commitment"),
    "committed-use": PlanKind("committed", table="commitment"),
    "savings-plan": PlanKind("committed", table="commitment"),
    "managed": PlanKind("managed"),
    "marketplace": PlanKind("marketplace"),
    "owned": PlanKind("owned", table="owned", usual=True),
}
# Titles of the groups that a reader may choose; other groups only appear among all list prices.
PLAN_GROUPS: Mapping[str, str] = {
    "on-demand": "list, on demand",
    "spot": "list, spot",
    "committed": "list, reserved",
    "owned": "owned machines",
}
# Key paths are written as in messages: owned.utilisation, components[0].amount.
_PATH = re.compile(r"[a-z_]+(\[[0-9]{1,4}\])?(\.[a-z_]+(\[[0-9]{1,4}\])?)*")
_STEP = re.compile(r"[a-z_]+|[0-9]+")
# Keys that only a single plan may have.
_PLAN_OF_KEY = {"sustained_use": "on-demand", "free_if_taken_back_seconds": "spot"}
# Units of every use: a plan needs a part per hour or per run, else it would be free.
_USED = ("hour", "run")


class Range(Spec):
    """The lowest and highest possible value of an uncertain number."""

    low: Bounded = key("Lowest possible value, in the unit of the key.", 0.1)
    high: Bounded = key("Highest possible value, in the unit of the key.", 0.5)

    @model_validator(mode="after")
    def _low_below_high(self) -> Range:
        if self.low > self.high:
            raise ValueError("should have low at most high")
        return self


class Price(PricedSpec):
    """The price of a machine under a plan, valid from a date on.

    The price of a rented machine is an ``amount`` per hour or a ``commitment``, plus the
    ``components``; it may also consist of components only. The price of an owned machine is
    computed from the table ``owned``.
    """

    hardware: Identifier = key("The machine, by id in hardware/.", "g6.xlarge")
    plan: Plan = key("Kind of plan: rented by use, committed to, or owned.")
    sku: Text | None = optional("The provider's name for the product.", "g6.xlarge")
    region: Text | None = optional("The provider's region; all regions by default.", "us-east-1")
    amount: Positive | None = optional("Price of an hour of use, in the plan's currency.", 3.06)
    per: Literal["hour"] = key("Unit of the amount, always an hour.", default="hour")
    commitment: Commitment | None = None
    components: Annotated[Array[Component], distinct(lambda component: component.label)] = key(
        "Parts that are added to amount or commitment; without both, they are the price.",
        default=(),
    )
    billing: BillingNameOrTable = key(
        "Rule that rounds used time to billed time: its name, or a table.", default="per-second"
    )
    sustained_use: SustainedUseName | None = optional(
        "Name of the discount for use through a month of 730 hours; gce-n1: the first quarter of"
        " these hours costs 100 % of the hourly price, the next quarters 80, 60 and 40 %.",
        "gce-n1",
    )
    start: Start = Start()
    interruptions: Interruptions | None = None
    free_if_taken_back_seconds: NonNegative = key(
        "Use is free if the provider takes the machine back within this number of seconds after "
        "a start; 0: no use is free.",
        3600,
        default=Decimal(0),
    )
    maximum_lifetime_seconds: Positive | None = optional(
        "Longest billed time after a start, in seconds; then the provider stops the machine.", 86400
    )
    credit: Credit | None = None
    owned: Owned | None = None
    ranges: Mapping[str, Range] = key("Ranges of uncertain values, by key path.", default={})
    assumed: bool = key("Whether the price is an assumption and not a market price.", default=False)

    @field_validator("ranges", mode="before")
    @classmethod
    def _paths_in_quotes(cls, ranges: Any) -> Any:
        for table in ranges.values() if isinstance(ranges, dict) else ():
            if isinstance(table, dict) and any(isinstance(part, dict) for part in table.values()):
                raise ValueError('should have key paths in quotes, such as "owned.utilisation"')
        return ranges

    @field_validator("sustained_use", "free_if_taken_back_seconds")
    @classmethod
    def _in_its_plan(cls, value: Any, info: ValidationInfo) -> Any:
        plan = _PLAN_OF_KEY[info.field_name or ""]
        if value and info.data.get("plan", plan) != plan:
            raise ValueError(f'should be set only with plan = "{plan}"')
        return value

    @field_validator("components")
    @classmethod
    def _premiums_on_parts(
        cls, components: tuple[Component, ...], info: ValidationInfo
    ) -> tuple[Component, ...]:
        whole = {COMPUTE: info.data.get("amount"), COMMITTED: info.data.get("commitment")}
        names = [name for name, paid in whole.items() if paid is not None]
        if any(component.label in names for component in components):
            raise ValueError(
                f"should have labels other than {join_choices(names)}, the part without one"
            )
        names += [part.label for part in components if part.amount and part.per == "hour"]
        for component in components:
            for name in component.of:
                if name not in names:
                    demand = "should have premiums of hourly parts of this price"
                    raise ValueError(f"{demand}, {got(name, names)}")
            if component.percent is not None and not names:
                raise ValueError("should have an hourly part with a premium, got no hourly part")
            terms = info.data.get("commitment")
            if component.percent is not None and terms is not None and terms.on_demand_hourly:
                raise ValueError("should have no percent with commitment.on_demand_hourly")
        return components

    @field_validator("maximum_lifetime_seconds")
    @classmethod
    def _time_to_work(cls, lifetime: Decimal | None, info: ValidationInfo) -> Decimal | None:
        start, interruptions = info.data.get("start"), info.data.get("interruptions")
        if lifetime is None:
            return lifetime
        if info.data.get("free_if_taken_back_seconds"):
            either = "either free_if_taken_back_seconds or maximum_lifetime_seconds"
            raise ValueError(f"should have {either}")
        if start is not None:
            begun = start.seconds if start.billed else Decimal(0)
            if interruptions:
                begun += interruptions.restart_seconds + interruptions.checkpoint_seconds
            if lifetime <= begun:
                raise ValueError(
                    f"should be longer than a start, a restart and a checkpoint, {begun} s"
                )
        return lifetime

    @model_validator(mode="after")
    def _one_way_to_pay(self) -> Price:
        for table in ("owned", "commitment"):
            if (self.kind.table == table) != (getattr(self, table) is not None):
                plans = [f'"{plan}"' for plan, kind in PLAN_KINDS.items() if kind.table == table]
                raise ValueError(
                    f"should have the table [{table}] with plan = {' or '.join(plans)}, "
                    "and only then"
                )
        whole = [part for part in (self.amount, self.commitment, self.owned) if part is not None]
        if len(whole) > 1:
            raise ValueError("should have one of amount (rented), [commitment] and [owned]")
        # Another component alone would make each use free.
        if not (whole or any(part.amount and part.per in _USED for part in self.components)):
            demand = "amount (rented), the table [owned], or a component per hour or per run"
            raise ValueError(f"should have {demand}")
        return self

    @model_validator(mode="after")
    def _terms_of_rent(self) -> Price:
        rented = self.interruptions, self.credit, self.components, self.maximum_lifetime_seconds
        if self.owned is not None and (any(rented) or self.start != Start()):
            raise ValueError(
                "should have no components, interruptions, credit, start or "
                "maximum_lifetime_seconds with [owned]"
            )
        return self

    @property
    def kind(self) -> PlanKind:
        """The properties of the kind of plan that this price has, such as ``interruptible``."""
        return PLAN_KINDS[self.plan]

    @property
    def interruptions_unknown(self) -> bool:
        """Whether the provider may take the machine back, but the spec does not state how often."""
        return self.kind.interruptible and self.interruptions is None

    @property
    def is_hourly(self) -> bool:
        """Whether hours of a rented machine have a price; False for an owned machine."""
        hourly = any(part.amount and part.per == "hour" for part in self.components)
        return hourly or self.amount is not None or self.commitment is not None

    @property
    def is_per_vcpu(self) -> bool:
        """Whether the costs in the table ``owned`` are for one vCPU; False for a rented machine."""
        return self.owned is not None and self.owned.per_vcpu

    @property
    def months(self) -> Decimal:
        """The length of the commitment in months; 0 for plans without a commitment."""
        return self.commitment.term_months if self.commitment else Decimal(0)

    @property
    def plan_text(self) -> str:
        """The name of the plan for readers; for a commitment, with its length."""
        return self.plan + (f", {render_count(self.months, 'month')}" if self.commitment else "")

    @property
    def provider_and_plan(self) -> tuple[str, ...]:
        """Provider and plan for readers; the plan alone if its name begins with the provider's."""
        plan = self.plan_text
        return (plan,) if plan.startswith(self.provider) else (self.provider, plan)

    @property
    def age(self) -> str:
        """The age of a price older than 60 days; empty for newer prices and owned machines."""
        return "" if self.owned else price_age(self.as_of)

    @property
    def reservation(self) -> str:
        """Why lists put this price last, such as that it is assumed; empty without a drawback."""
        if self.flaw:
            return self.flaw
        if self.assumed:
            return "its price is assumed"
        if self.interruptions_unknown:
            return "not known how often it is interrupted"
        return "paid for its whole term, used or not" if self.commitment else ""

    @property
    def unconfirmed_text(self) -> str:
        """The names of the price's values that no source confirms; may be empty."""
        parts = {"amount": "amount", "as_of": "date", "billing": "billing"}
        return " and ".join(name for key, name in parts.items() if key in self.unconfirmed)

    @property
    def month_shares(self) -> tuple[Decimal, ...]:
        """Price shares of equal parts of a month; () without a discount for sustained use."""
        return SUSTAINED_USE[self.sustained_use] if self.sustained_use else ()

    @property
    def billing_rule(self) -> Billing:
        """The rule that rounds used time to billed time, looked up if the spec only names it."""
        return rule_of(self.billing)


def key_path(text: str) -> KeyPath:
    """Parse a key path such as ``components[0].amount``; raises ValueError for other texts."""
    if not _PATH.fullmatch(text):
        raise ValueError("should be a key path, such as owned.utilisation or components[0].amount")
    return tuple(int(step) if step.isdecimal() else step for step in _STEP.findall(text))


def figure_at(table: Mapping[str, Any], path: KeyPath) -> Decimal:
    """The number at the path ``path`` in a price's table; raises ValueError if none is there."""
    value: Any = table
    for step in path:
        if isinstance(step, str):
            value = value.get(step) if isinstance(value, Mapping) else None
        else:
            value = value[step] if isinstance(value, list | tuple) and step < len(value) else None
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return Decimal(value)
    *around, last = [step for step in path if isinstance(step, str)]
    choices = ordered_keys_of(Price, tuple(around))
    name = describe(".".join((*around, last)))
    if last not in choices:
        near = suggest_or_list(last, choices)
        raise ValueError(f"should be a key of this spec, got {name}{near}")
    raise ValueError(f"should be the key of a number in this spec, got {name}")


def value_at(price: Price, path: str) -> Decimal:
    """The number at a key path of a price, or the key's default; InputError without a number."""
    try:
        return figure_at(_table_for_path(price, key_path(path)), key_path(path))
    except ValueError as error:
        raise InputError(f"{price.id}: {path:.80}: {error}") from None


def with_value(price: Price, path: str, value: Decimal) -> Price:
    """A copy of the price with the number ``value`` at a key path, validated as a spec.

    Raises InputError if there is no number at the path, or if the new price is invalid.
    """
    value_at(price, path)
    keys = key_path(path)
    table = _table_for_path(price, keys)
    inner: Any = table
    for step in keys[:-1]:
        inner = inner[step]
    inner[keys[-1]] = value
    return validated(Price, table, price.id)


def _table_for_path(price: Price, path: KeyPath) -> dict[str, Any]:
    table = price.model_dump(exclude_none=True)
    # The price may only name its billing rule, which has the value at the path.
    if len(path) > 1 and path[0] == "billing":
        table["billing"] = price.billing_rule.model_dump()
    return table
