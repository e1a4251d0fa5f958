"""The terms of a price plan other than its hourly amount.

For any plan: the rules from used time to billed time. For a rented plan: components, commitment,
starts and interruptions. For an owned machine: the costs that give the price of an hour.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from types import MappingProxyType
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

from epochcost.specs.base import DISTINCT, FROM_LIST, NonNegative, Positive, Share, Spec, Text
from epochcost.units import HOURS_PER_BILLED_MONTH


def _none_or_a_millisecond(seconds: Decimal) -> Decimal:
    if 0 < seconds < Decimal("0.001"):
        raise ValueError("should be 0, or at least 0.001")
    return seconds


class Billing(Spec):
    """The rule by which used time is rounded to billed time.

    Use below the minimum counts as the minimum; longer use is rounded up to whole increments. Each
    start of a machine is rounded separately. The smallest allowed increment is a millisecond.
    """

    increment_seconds: Annotated[NonNegative, AfterValidator(_none_or_a_millisecond)] = Field(
        description="Billed time is a multiple of this, in seconds; 0 bills the time as used.",
        examples=[60],
    )
    minimum_seconds: NonNegative = Field(
        Decimal(0), description="Shortest billed time of a start, in seconds.", examples=[600]
    )


BillingName = Literal["prorated", "per-second", "whole-hour", "ten-minutes"]

# The named rules: `billing = "per-second"` in a price, `--billing` on the command line.
# - whole-hour: EC2 until 2017-10-01, on demand and reserved, each start separately (AWS pricing as
#   quoted by exchangetuts.com and serverfault.com).
# - per-second: EC2 since 2017-10-02, Linux on demand, reserved and spot (aws.amazon.com, What's
#   New, October 2017, "Announcing Amazon EC2 per second billing"); GCE since 2017-09-26,
#   preemptible too (itpro.com, itnews.com.au; cloud.google.com/compute/vm-instance-pricing).
# - ten-minutes: GCE until 2017-09-25, ten minutes at least and then whole minutes (Google Compute
#   Engine pricing as archived on 2015-03-25; cloudmaven.github.io).
BILLING_RULES: Mapping[BillingName, Billing] = MappingProxyType(
    {
        "prorated": Billing(increment_seconds=Decimal(0)),
        "per-second": Billing(increment_seconds=Decimal(1), minimum_seconds=Decimal(60)),
        "whole-hour": Billing(increment_seconds=Decimal(3600), minimum_seconds=Decimal(3600)),
        "ten-minutes": Billing(increment_seconds=Decimal(60), minimum_seconds=Decimal(600)),
    }
)


def _name_or_table(value: Any) -> str:
    return "table" if isinstance(value, dict | Billing) else "name"


# The tags make pydantic check a table as a table and all else as a name, for one fault, not two.
BillingNameOrTable = Annotated[
    Annotated[BillingName, Tag("name")] | Annotated[Billing, Tag("table")],
    Discriminator(_name_or_table),
]


def rule_of(billing: BillingName | Billing) -> Billing:
    """The billing rule.

    If the spec names a rule instead of stating it, the rule is looked up.
    """
    return billing if isinstance(billing, Billing) else BILLING_RULES[billing]


SustainedUseName = Literal["gce-n1"]

# The named discounts for use through a month: `sustained_use = "gce-n1"` in a price. Each share of
# the hourly price applies to an equal part of a month's hours, the first part first.
# - gce-n1: all N1 machines and the GPUs attached to them, on demand
#   (cloud.google.com/compute/docs/sustained-use-discounts: a quarter of the month each).
SUSTAINED_USE: Mapping[SustainedUseName, tuple[Decimal, ...]] = MappingProxyType(
    {"gce-n1": (Decimal(1), Decimal("0.8"), Decimal("0.6"), Decimal("0.4"))}
)


class Owned(Spec):
    """The costs of an owned machine, which give the price of an hour of use.

    With ``per_vcpu``, amounts and watts are those of one vCPU, for machines of any size.
    """

    purchase: Positive = Field(
        description="Price of buying the machine, in the plan's currency.", examples=[3000]
    )
    residual: NonNegative = Field(
        Decimal(0),
        description="Value at the end of its life, in the plan's currency.",
        examples=[300],
    )
    years: Positive = Field(description="Its life, in years.", examples=[4])
    utilisation: Annotated[Share, Field(gt=0)] = Field(
        description="Share of its life in which it is used.", examples=[0.3]
    )
    power_watts: Positive = Field(
        description="Power drawn in use, before pue, in watts.", examples=[350]
    )
    idle_watts: NonNegative = Field(
        Decimal(0),
        description="Power drawn in the rest of its life, before pue, in watts.",
        examples=[60],
    )
    pue: Annotated[Positive, Field(ge=1)] = Field(
        Decimal(1),
        description="Power usage effectiveness: energy of the building over energy of the machine.",
        examples=[1.5],
    )
    electricity_per_kwh: NonNegative = Field(
        description="Price of a kilowatt-hour, in the plan's currency.", examples=[0.15]
    )
    rack_per_month: NonNegative = Field(
        Decimal(0),
        description="Rent of its rack space for a month, used or not, in the plan's currency.",
        examples=[40],
    )
    maintenance_per_year: NonNegative = Field(
        Decimal(0),
        description="Maintenance for a year, used or not, in the plan's currency.",
        examples=[100],
    )
    per_vcpu: bool = Field(
        False, description="Whether amounts and watts are for one vCPU instead of the machine."
    )

    @model_validator(mode="after")
    def _residual_below_purchase(self) -> Owned:
        if self.residual > self.purchase:
            raise ValueError("should have residual at most purchase")
        return self


# Names of the hourly parts that are no components, for premiums: `amount` and `[commitment]`.
COMPUTE = "compute"
COMMITTED = "commitment"


class Component(Spec):
    """A part of a price: an amount for each of ``count`` units, or a premium on other parts.

    The unit decides the quantity. A gigabyte-month has 730 hours, as at EC2 and GCE, and is billed
    for the time of use. Moved data is billed by the gigabytes that the usage states. A run costs
    the same whatever its duration. A premium refers to the plan's ``amount`` as ``compute`` and to
    its commitment as ``commitment``. A premium is never a percentage of another premium.
    """

    label: Text = Field(description="Text of its line in the bill.", examples=["NVIDIA T4"])
    amount: Positive | None = Field(
        None, description="Price of a unit, in the plan's currency.", examples=[0.35]
    )
    count: Positive = Field(Decimal(1), description="Number of units.", examples=[1])
    per: Literal["hour", "gb-month", "gb", "run"] = Field(
        "hour",
        description=(
            "Unit of the amount: an hour of use, a gigabyte-month of 730 hours,"
            " a gigabyte moved, or a run."
        ),
    )
    billing: BillingNameOrTable | None = Field(
        None,
        description="Rule from used to billed time of a gigabyte-month: a name or a table.",
        examples=["per-second"],
    )
    percent: NonNegative | None = Field(
        None, description="A premium on other hourly parts, in percent of them.", examples=[10]
    )
    of: Annotated[tuple[Text, ...], FROM_LIST, DISTINCT] = Field(
        (),
        description="Labels of the parts with this premium; all hourly parts by default.",
        examples=[["compute"]],
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


class Commitment(Spec):
    """A commitment to pay for machines for a whole term, used or not.

    The upfront and the hourly payments are spread over the hours in which the machine is used. With
    ``on_demand_hourly`` the commitment covers ``machines`` machines at a time, and each further
    machine costs that price; without it, every machine needs a commitment.
    """

    term_months: Positive = Field(
        description="Length of the term, in months of 730 hours.", examples=[12]
    )
    payment: Literal["no-upfront", "partial-upfront", "all-upfront"] = Field(
        description="Times of payment."
    )
    upfront: NonNegative = Field(
        Decimal(0), description="Paid at once, in the plan's currency.", examples=[5000]
    )
    hourly: NonNegative = Field(
        Decimal(0),
        description="Paid for every hour of the term, used or not, in the plan's currency.",
        examples=[1.2],
    )
    utilisation: Annotated[Share, Field(gt=0)] = Field(
        Decimal(1), description="The share of the term that is used.", examples=[0.8]
    )
    on_demand_hourly: Positive | None = Field(
        None,
        description="Price of an hour of a machine beyond the commitment, in the plan's currency.",
        examples=[1.9],
    )
    machines: Positive = Field(
        Decimal(1),
        description=(
            "Number of machines that it covers at once, each for both payments; of a commitment to"
            " spend, the committed spend over that of one machine."
        ),
        examples=[8],
    )

    @property
    def by_the_hour(self) -> Decimal:
        """Cost of an hour of the term: the hourly payment plus a share of the upfront payment."""
        return self.upfront / (self.term_months * HOURS_PER_BILLED_MONTH) + self.hourly

    @model_validator(mode="after")
    def _payments_as_named(self) -> Commitment:
        paid = (self.upfront > 0, self.hourly > 0)
        if paid != (self.payment != "no-upfront", self.payment != "all-upfront"):
            raise ValueError(f"should have upfront and hourly amounts that fit {self.payment}")
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
    """Duration of a machine's start, whether it is billed, and how often it fails.

    A failed start takes as long as a successful start, but costs only ``failure_charge``.
    """

    seconds: NonNegative = Field(
        Decimal(0), description="Duration of a start, in seconds.", examples=[90]
    )
    billed: bool = Field(True, description="Whether that time is billed.")
    failure_probability: Annotated[Share, Field(lt=1)] = Field(
        Decimal(0),
        description="Share of starts that fail; a failed start is repeated.",
        examples=[0.02],
    )
    failure_charge: NonNegative = Field(
        Decimal(0), description="Price of a failed start, in the plan's currency.", examples=[0.01]
    )


class Interruptions(Spec):
    """How often the provider takes the machine back, and how long checkpoints and restarts take."""

    rate_per_hour: NonNegative = Field(
        description="Interruptions in an hour, on average.", examples=[0.05]
    )
    notice_seconds: NonNegative = Field(
        Decimal(0), description="Time between notice and interruption, in seconds.", examples=[120]
    )
    checkpoint_seconds: NonNegative = Field(
        Decimal(0), description="Duration of writing a checkpoint, in seconds.", examples=[10]
    )
    checkpoint_interval_seconds: Positive | None = Field(
        None,
        description="Work between checkpoints, in seconds; Young's and Daly's optimum by default.",
        examples=[600],
    )
    restart_seconds: NonNegative = Field(
        Decimal(0),
        description="Billed time from a complete start to the next step, in seconds.",
        examples=[60],
    )


class Credit(Spec):
    """Free credit that a provider gives to new customers; it pays a bill first."""

    amount: Positive = Field(description="The credit, in the plan's currency.", examples=[300])
    label: Text = Field("free credit", description="Text of its line in the bill.")
