"""A price and a usage become a quote: the one entry to billing, rented or owned."""

from __future__ import annotations

from decimal import Decimal

from epochcost.cost.lines import Quote, Usage
from epochcost.cost.money import exact_arithmetic, kept
from epochcost.cost.owned import owned_lines
from epochcost.cost.rented import rented_lines
from epochcost.errors import InputError
from epochcost.specs.billing import Billing
from epochcost.specs.price import Price


def quote(price: Price, usage: Usage, *, billing: Billing | None = None) -> Quote:
    """Bill a usage under a price plan.

    ``billing`` replaces the plan's own rule, for example to prorate a share of a longer job. An
    owned machine has no billing rule: every second costs the same.
    Amounts are Decimal, kept to 18 decimals (halves to even), so that ``Quote.total`` is exactly
    the sum of the lines. Raises InputError where the plan is per vCPU and ``usage.vcpus`` is not
    given or the usage is accelerated, and where figures overflow.
    """
    with exact_arithmetic():
        if price.owned is not None:
            lines = owned_lines(price.owned, usage, price.id)
        else:
            assert price.amount is not None, "a Price has amount or owned"
            lines = rented_lines(_hourly(price.amount), billing or price.billing_rule, usage)
    return Quote(lines, price.currency, price.id, price.assumed)


def quote_at_rate(
    rate_per_hour: Decimal, billing: Billing, usage: Usage, currency: str = "USD"
) -> Quote:
    """Bill a usage at a bare hourly rate, without a price spec.

    Raises InputError where the rate is not at least 1e-18 and finite.
    """
    with exact_arithmetic():
        lines = rented_lines(_hourly(rate_per_hour), billing, usage)
    return Quote(lines, currency, None, assumed=False)


def _hourly(rate: Decimal) -> Decimal:
    hourly = kept(rate)
    if hourly <= 0:
        raise InputError(f"rate: demanded an amount per hour above 0, at least 1e-18; got {rate}")
    return hourly
