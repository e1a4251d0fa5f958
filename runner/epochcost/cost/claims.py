"""Published costs recomputed from their times and prices, compared at the printed precision."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

from epochcost.cost.bill import quote
from epochcost.cost.lines import Usage
from epochcost.cost.money import exact_arithmetic
from epochcost.errors import InputError
from epochcost.specs.billing import BILLING_RULES
from epochcost.specs.price import Price
from epochcost.specs.published import Claim, Timing

_UNITS_PER_DOLLAR = {"USD": 1, "US cents": 100}


@dataclass(frozen=True, slots=True)
class ClaimCheck:
    """A claim beside our figure, all in ``claim.unit``: exact, and rounded as the source prints."""

    claim: Claim
    exact: Decimal
    ours: Decimal
    printed: Decimal

    @property
    def equal(self) -> bool:
        """Whether our figure, at the source's printed precision, is the source's."""
        return self.ours == self.printed


def recompute(timing: Timing, price: Price) -> tuple[ClaimCheck, ...]:
    """Every claim of one row of a published table, recomputed; halves round up, as print does.

    Raises InputError where the price is not the row's or not in US dollars.
    """
    if price.id != timing.price or price.currency != "USD":
        raise InputError(
            f"{timing.id}: demanded its price {timing.price} in USD; "
            f"got {price.id} in {price.currency}"
        )
    return tuple(_check(claim, timing, price) for claim in timing.claims)


def _check(claim: Claim, timing: Timing, price: Price) -> ClaimCheck:
    printed = Decimal(claim.printed)
    with exact_arithmetic():
        usage = Usage(timing.seconds_per_epoch * claim.epochs)
        bill = quote(price, usage, billing=BILLING_RULES[claim.billing])
        exact = bill.total * _UNITS_PER_DOLLAR[claim.unit]
        ours = exact.quantize(printed, rounding=ROUND_HALF_UP)
    return ClaimCheck(claim, exact, ours, printed)
