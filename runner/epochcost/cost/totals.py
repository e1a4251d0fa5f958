"""What bills come to, without their lines: the same amounts in a fraction of the time.

Tables of costs show thousands of amounts and no line of them. How a bill is built, and why, is
known to `cost.bill`; nothing here rounds or prices by itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from epochcost.cost.bill import quote, require_hourly_parts, share
from epochcost.cost.interrupted import schedule_of
from epochcost.cost.lines import Line, Usage
from epochcost.cost.money import exact_arithmetic
from epochcost.cost.parts import hourly_parts
from epochcost.cost.rented import failure_lines, hourly_total, run_lines, storage_lines
from epochcost.cost.starts import share_of_a_start
from epochcost.specs.billing import Billing
from epochcost.specs.price import Price


def quoted_total(price: Price, usage: Usage, *, billing: Billing | None = None) -> Decimal:
    """The total of ``bill.quote`` without credit; raises InputError as it does."""
    if price.owned is not None or usage.egress_gb:
        return quote(price, usage, billing=billing, credit=Decimal(0)).total
    with exact_arithmetic():
        schedule = schedule_of(price, usage.duration_seconds, billing or price.billing_rule)
        hourly = hourly_total(hourly_parts(price), schedule, usage.machines)
        others = (
            *storage_lines(price, schedule, usage.machines),
            *run_lines(price, usage),
            *failure_lines(price, schedule, usage.machines),
        )
        return hourly + _sum(others)


def shared_total(price: Price, usage: Usage) -> Decimal:
    """The total of ``bill.share``; raises InputError as it does."""
    if price.owned is not None or usage.egress_gb:
        return share(price, usage).total
    with exact_arithmetic():
        schedule = share_of_a_start(usage.duration_seconds)
        hourly = hourly_total(require_hourly_parts(price), schedule, usage.machines)
        return hourly + _sum(storage_lines(price, schedule, usage.machines))


def _sum(lines: Iterable[Line]) -> Decimal:
    return sum((line.amount for line in lines), Decimal(0))
