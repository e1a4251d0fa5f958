"""Owned machines as a price plan declares them: what they cost so that an hour has a price."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

from pydantic import Field, model_validator

from epochcost.specs.base import NonNegative, Positive, Share, Spec


class Owned(Spec):
    """What an owned machine costs, so that an hour of use has a price.

    Amounts are in the plan's currency; ``per_vcpu`` multiplies all but ``pue``, the shares and the
    electricity by the machine's vCPUs, for a machine whose make is not known. ``utilisation`` is
    the share of its life in use; ``power_watts`` is drawn while in use and ``idle_watts`` in the
    rest of its life, both before ``pue``. ``rack_per_month`` and ``maintenance_per_year`` are paid
    whether it is used or not.
    """

    purchase: Positive
    residual: NonNegative = Decimal(0)
    years: Positive
    utilisation: Annotated[Share, Field(gt=0)]
    power_watts: Positive
    idle_watts: NonNegative = Decimal(0)
    pue: Annotated[Positive, Field(ge=1)] = Decimal(1)
    electricity_per_kwh: NonNegative
    rack_per_month: NonNegative = Decimal(0)
    maintenance_per_year: NonNegative = Decimal(0)
    per_vcpu: bool = False

    @model_validator(mode="after")
    def _residual_below_purchase(self) -> Owned:
        if self.residual > self.purchase:
            raise ValueError("should have residual at most purchase")
        return self
