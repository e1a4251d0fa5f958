"""How a provider turns used time into billed time: a step, a minimum, or neither."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from epochcost.specs.base import NonNegative, Spec


def _none_or_a_millisecond(seconds: Decimal) -> Decimal:
    if 0 < seconds < Decimal("0.001"):
        raise ValueError("should be 0, or at least 0.001")
    return seconds


class Billing(Spec):
    """Use up to the minimum is billed as the minimum, longer use in whole steps.

    Each start is rounded by itself. Nobody bills in less than a millisecond.
    """

    increment_seconds: Annotated[NonNegative, AfterValidator(_none_or_a_millisecond)] = Field(
        description="The step in which use is billed, in seconds; 0 bills it as used.",
        examples=[60],
    )
    minimum_seconds: NonNegative = Field(
        Decimal(0),
        description="The least that is billed for each start, in seconds.",
        examples=[600],
    )


BillingName = Literal["prorated", "per-second", "whole-hour", "ten-minutes"]

# The named rules: `billing = "per-second"` in a price, `--billing` on the command line.
# - whole-hour: EC2 until 2017-10-01, on demand and reserved, each start by itself (AWS pricing as
#   quoted by exchangetuts.com and serverfault.com). Of its spot machines of that time the hour that
#   AWS interrupted was free: `interruptions.interrupted_period_free`.
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
