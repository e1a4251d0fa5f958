"""Owned machines as a price plan declares them: what they cost so that an hour has a price."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

from pydantic import Field, model_validator

from epochcost.specs.base import NonNegative, Positive, Share, Spec


class Owned(Spec):
    """What an owned machine costs, so that an hour of use has a price.

    ``per_vcpu``, for a machine whose make is not known, leaves years, shares, ``pue`` and
    electricity as they are.
    """

    purchase: Positive = Field(
        description="What the machine costs to buy, in the plan's currency.", examples=[3000]
    )
    residual: NonNegative = Field(
        Decimal(0),
        description="What it is worth at the end of its life, in the plan's currency.",
        examples=[300],
    )
    years: Positive = Field(description="Its life, in years.", examples=[4])
    utilisation: Annotated[Share, Field(gt=0)] = Field(
        description="The share of its life in which it is used.", examples=[0.3]
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
        description=(
            "Power usage effectiveness: energy of the building over energy of the machine."
        ),
        examples=[1.5],
    )
    electricity_per_kwh: NonNegative = Field(
        description="What a kilowatt-hour costs, in the plan's currency.", examples=[0.15]
    )
    rack_per_month: NonNegative = Field(
        Decimal(0),
        description="Rent of its place, used or not, in the plan's currency for a month.",
        examples=[40],
    )
    maintenance_per_year: NonNegative = Field(
        Decimal(0),
        description="Upkeep, used or not, in the plan's currency for a year.",
        examples=[100],
    )
    per_vcpu: bool = Field(
        False,
        description="Whether amounts and watts are for one vCPU and multiply by the machine's.",
    )

    @model_validator(mode="after")
    def _residual_below_purchase(self) -> Owned:
        if self.residual > self.purchase:
            raise ValueError("should have residual at most purchase")
        return self
