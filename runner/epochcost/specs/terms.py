"""The terms of a price plan other than its hourly amount, such as billing and commitment."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    Discriminator,
    Field,
    Tag,
    ValidationInfo,
    field_validator,
    model_validator,
)

from epochcost.specs.base import (
    DISTINCT,
    Array,
    NonNegative,
    Positive,
    Pue,
    Share,
    Spec,
    Text,
    key,
    optional,
)
from epochcost.units import HOURS_PER_BILLED_MONTH


def _none_or_a_millisecond(seconds: Decimal) -> Decimal:
    if 0 < seconds < Decimal("0.001"):
        raise ValueError("should be 0, or at least 0.001")
    return seconds


class Billing(Spec):
    """The rule by which used time is rounded to billed time.

    Use below the minimum counts as the minimum. Longer use is rounded up to whole increments. The
    use after each start of a machine is rounded separately. The smallest allowed increment is a
    millisecond.
    """

    increment_seconds: Annotated[NonNegative, AfterValidator(_none_or_a_millisecond)] = key(
        "Billed time is a multiple of this number of seconds; 0 bills the time as used.", 60
    )
    minimum_seconds: NonNegative = key("Shortest billed time, in seconds.", 600, default=Decimal(0))


BillingName = Literal["prorated", "per-second", "whole-hour", "ten-minutes"]

# The named rules: `billing = "per-second"` in a price, `--billing` on the command line.
# - whole-hour: EC2 until 2017-10-01, on demand and reserved, each start separately (AWS pricing as
#   quoted by exchangetuts.com and serverfault.com).
# - per-second: EC2 since 2017-10-02, Linux on demand, reserved and spot (aws.amazon.com, What's
#   New, October 2017, "Announcing Amazon EC2 per second billing"); GCE since 2017-09-26,
#   preemptible too (itpro.com, itnews.com.au; cloud.google.com/compute/vm-instance-pricing).
# - ten-minutes: GCE until 2017-09-25, ten minutes at least and then whole minutes (Google Compute
#   Engine pricing as archived on 2015-03-25; cloudmaven.github.io).
BILLING_RULES: Mapping[BillingName, Billing] = {
    "prorated": Billing(increment_seconds=Decimal(0)),
    "per-second": Billing(increment_seconds=Decimal(1), minimum_seconds=Decimal(60)),
    "whole-hour": Billing(increment_seconds=Decimal(3600), minimum_seconds=Decimal(3600)),
    "ten-minutes": Billing(increment_seconds=Decimal(60), minimum_seconds=Decimal(600)),
}


def _name_or_table(value: Any) -> str:
    return "table" if isinstance(value, dict | Billing) else "name"


# With tags, pydantic checks a value only as a table or only as a name: one fault instead of two.
BillingNameOrTable = Annotated[
    Annotated[BillingName, Tag("name")] | Annotated[Billing, Tag("table")],
    Discriminator(_name_or_table),
]


def rule_of(billing: BillingName | Billing) -> Billing:
    """The billing rule that a price states, looked up if the price only names the rule."""
    return billing if isinstance(billing, Billing) else BILLING_RULES[billing]


SustainedUseName = Literal["gce-n1"]

# The named discounts for use through a month: `sustained_use = "gce-n1"` in a price. Each share of
# the hourly price applies to an equal part of a month's hours, the first part first.
# - gce-n1: all N1 machines and the GPUs attached to them, on demand
#   (cloud.google.com/compute/docs/sustained-use-discounts: a quarter of the month each).
SUSTAINED_USE: Mapping[SustainedUseName, tuple[Decimal, ...]] = {
    "gce-n1": (Decimal(1), Decimal("0.8"), Decimal("0.6"), Decimal("0.4"))
}


class Owned(Spec):
    """The costs of an owned machine, from which the price of an hour of use is computed.

    All amounts are in the plan's currency. Watts are not yet multiplied by ``pue``.
    """

    purchase: NonNegative = key("Price of buying the machine; 0 if it is already paid for.", 3000)
    residual: NonNegative = key("Value at the end of its life.", 300, default=Decimal(0))
    years: Annotated[Positive, Field(le=20)] = key("Life of the machine, in years.", 4)
    utilisation: Annotated[Share, Field(gt=0)] = key("Share of its life in which it is used.", 0.3)
    power_watts: Positive = key("Power drawn in use, in watts.", 350)
    idle_watts: NonNegative = key("Power drawn while idle, in watts.", 60, default=Decimal(0))
    pue: Pue = key(
        "PUE: energy of the building divided by energy of the machine.", 1.5, default=Decimal(1)
    )
    electricity_per_kwh: NonNegative = key("Price of a kilowatt-hour.", 0.15)
    rack_per_month: NonNegative = key("Rent of rack space for a month.", 40, default=Decimal(0))
    maintenance_per_year: NonNegative = key("Maintenance for a year.", 100, default=Decimal(0))
    per_vcpu: bool = key("Whether amounts and watts are those of one vCPU.", default=False)

    @model_validator(mode="after")
    def _residual_below_purchase(self) -> Owned:
        if self.residual > self.purchase:
            raise ValueError("should have residual at most purchase")
        return self


# Premiums refer to a price's `amount` and `[commitment]` by these names.
COMPUTE = "compute"
COMMITTED = "commitment"


class Component(Spec):
    """A part of a price: an amount for each of ``count`` units, or a premium (a percentage).

    A ``gb-month`` is a gigabyte for 730 hours; only the hours of use are billed, as at EC2 and GCE.
    A ``gb`` is a gigabyte of data that the job sends out of the cloud (`quote --egress-gb`). The
    amount of a ``run`` does not depend on the run's duration. The label ``compute`` stands for the
    plan's ``amount``, and ``commitment`` for the payments of its commitment. A premium never
    applies to another premium.
    """

    label: Text = key("Text of the line in the bill.", "NVIDIA T4")
    amount: Positive | None = optional("Price of a unit, in the plan's currency.", 0.35)
    count: Positive = key("Number of units.", 1, default=Decimal(1))
    per: Literal["hour", "gb-month", "gb", "run"] = key(
        "Unit of the amount: an hour of use, a gigabyte-month of 730 hours,"
        " a gigabyte moved, or a run.",
        default="hour",
    )
    billing: BillingNameOrTable | None = optional(
        "Rule that rounds the billed time of gigabyte-months: its name, or a table.", "per-second"
    )
    percent: NonNegative | None = optional("A premium on other hourly parts, in percent.", 10)
    of: Annotated[Array[Text], DISTINCT] = key(
        "Labels of parts with the premium; all hourly parts by default.", ["compute"], default=()
    )

    @model_validator(mode="after")
    def _amount_or_percent(self) -> Component:
        if (self.amount is None) == (self.percent is None):
            raise ValueError("should have either amount or percent")
        if self.of and self.percent is None:
            raise ValueError("should have percent with of, which names the parts with a premium")
        if self.count != 1 and (self.percent is not None or self.per == "gb"):
            raise ValueError("should have no count with percent or per gb, which have no units")
        if self.percent is not None and self.per != "hour":
            raise ValueError("should have no per with percent: premiums are on hourly parts")
        if self.billing is not None and self.per != "gb-month":
            raise ValueError('should have per = "gb-month" with billing')
        return self


_PAID = {
    "no-upfront": "hourly, but no upfront",
    "partial-upfront": "both upfront and hourly",
    "all-upfront": "upfront, but no hourly",
}


class Commitment(Spec):
    """A commitment to pay for machines for a whole term, used or not.

    The payments for a machine over the whole term are divided by the hours in which it is used.
    With ``on_demand_hourly``, the commitment covers ``machines`` machines that run at the same
    time. Each further machine costs ``on_demand_hourly`` an hour. Without ``on_demand_hourly``,
    each machine needs a separate commitment. All amounts are in the plan's currency.
    """

    term_months: Positive = key("Length of the term, in months of 730 hours.", 12)
    payment: Literal["no-upfront", "partial-upfront", "all-upfront"] = key(
        "Whether nothing, a part or everything is paid upfront."
    )
    upfront: NonNegative = key("Upfront payment for each machine.", 5000, default=Decimal(0))
    hourly: NonNegative = key(
        "Payment for each machine and every hour of the term, used or not.", 1.2, default=Decimal(0)
    )
    utilisation: Annotated[Share, Field(gt=0)] = key(
        "Share of the term in which the machine is used.", 0.8, default=Decimal(1)
    )
    on_demand_hourly: Positive | None = optional("Hourly price of each further machine.", 1.9)
    machines: Positive = key(
        "Number of machines that the commitment covers at a time; for a commitment to a sum of "
        "money, the sum divided by the price of one machine.",
        8,
        default=Decimal(1),
    )

    @property
    def by_the_hour(self) -> Decimal:
        """Cost of an hour of the term: the hourly payment plus a share of the upfront payment."""
        return self.upfront / (self.term_months * HOURS_PER_BILLED_MONTH) + self.hourly

    @model_validator(mode="after")
    def _payments_as_named(self) -> Commitment:
        paid = (self.upfront > 0, self.hourly > 0)
        if paid != (self.payment != "no-upfront", self.payment != "all-upfront"):
            raise ValueError(f'should have {_PAID[self.payment]} with payment = "{self.payment}"')
        if self.on_demand_hourly is not None and self.by_the_hour > self.on_demand_hourly:
            raise ValueError(
                "should have an hour of the term at most at on_demand_hourly, got "
                f"{self.by_the_hour:.6g}"
            )
        return self

    @field_validator("machines")
    @classmethod
    def _of_a_few_machines(cls, machines: Decimal, info: ValidationInfo) -> Decimal:
        if machines != 1 and info.data.get("on_demand_hourly", 1) is None:
            raise ValueError("should have on_demand_hourly, the price of others, with machines")
        return machines


class Start(Spec):
    """Duration of a machine's start, whether the start is billed, and how often starts fail.

    A failed start takes as long as a successful start, but costs ``failure_charge``, in the plan's
    currency.
    """

    seconds: NonNegative = key("Duration of a start, in seconds.", 90, default=Decimal(0))
    billed: bool = key("Whether the duration of a start is billed.", default=True)
    failure_probability: Annotated[Share, Field(lt=1)] = key(
        "Share of starts that fail; a failed start is repeated.", 0.02, default=Decimal(0)
    )
    failure_charge: NonNegative = key("Price of a failed start.", 0.01, default=Decimal(0))


class Interruptions(Spec):
    """How often the provider takes the machine back, and how long checkpoints and restarts take."""

    rate_per_hour: NonNegative = key("Interruptions in an hour, on average.", 0.05)
    notice_seconds: NonNegative = key(
        "Time between notice and interruption, in seconds.", 120, default=Decimal(0)
    )
    checkpoint_seconds: NonNegative = key(
        "Duration of writing a checkpoint, in seconds.", 10, default=Decimal(0)
    )
    checkpoint_interval_seconds: Positive | None = optional(
        "Time of work between checkpoints, in seconds; Daly's optimum by default.", 600
    )
    restart_seconds: NonNegative = key(
        "Billed time from the end of a start to the next step, in seconds.", 60, default=Decimal(0)
    )


class Credit(Spec):
    """Free credit that a provider gives to new customers; bills use up the credit first."""

    amount: Positive = key("Amount of the credit, in the plan's currency.", 300)
    label: Text = key("Text of the line in the bill.", default="free credit")
