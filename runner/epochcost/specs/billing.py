"""How a provider turns used time into billed time: a step, a minimum, or neither."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Literal

from epochcost.specs.base import NonNegative, Spec


class Billing(Spec):
    """Use up to the minimum is billed as the minimum, longer use in whole steps.

    A step is ``increment_seconds`` (0: as used). Each start is rounded by itself.
    """

    increment_seconds: NonNegative
    minimum_seconds: NonNegative = Decimal(0)


BillingName = Literal["prorated", "per-second", "whole-hour"]

# The named rules: `billing = "per-second"` in a price, `--billing` on the command line.
# EC2 billed whole hours until 2017-10-01 and per second with a 60 s minimum since; GCE likewise
# per second since 2017-09-26 (sources in specs/prices).
BILLING_RULES: Mapping[BillingName, Billing] = MappingProxyType(
    {
        "prorated": Billing(increment_seconds=Decimal(0)),
        "per-second": Billing(increment_seconds=Decimal(1), minimum_seconds=Decimal(60)),
        "whole-hour": Billing(increment_seconds=Decimal(3600), minimum_seconds=Decimal(3600)),
    }
)
