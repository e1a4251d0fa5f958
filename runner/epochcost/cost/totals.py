"""What bills come to, without their lines: the same amounts in a fraction of the time.

Tables of costs show thousands of amounts and no line of them. How a bill is built, and why, is
known to `cost.bill`; nothing here rounds or prices by itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from epochcost.cost.bill import quote, require_hourly_parts, share
from epochcost.cost.interrupted import schedule_of
from epochcost.cost.lines import Line, Usage
from epochcost.cost.money import exact_arithmetic, kept
from epochcost.cost.parts import hourly_parts
from epochcost.cost.rented import failure_lines, run_lines, storage_lines
from epochcost.cost.starts import Schedule, share_of_a_start
from epochcost.specs.billing import Billing
from epochcost.specs.identity import Identity
from epochcost.specs.price import Price
from epochcost.units import SECONDS_PER_HOUR


@dataclass(frozen=True, slots=True)
class _Charges:
    """What a plan charges: by the hour, one rate for each part, and whether for anything else."""

    hourly: tuple[Decimal, ...]
    others: bool

    def of_hours(self, seconds: Decimal) -> Decimal:
        """What ``hourly_lines`` sum to: all but the first are differences, so all time tells."""
        amounts = (kept(rate * seconds / SECONDS_PER_HOUR) for rate in self.hourly)
        return sum(amounts, Decimal(0))


def quoted_total(price: Price, usage: Usage, *, billing: Billing | None = None) -> Decimal:
    """The total of ``bill.quote`` without credit; raises InputError as it does."""
    if price.owned is not None or usage.egress_gb:
        return quote(price, usage, billing=billing, credit=Decimal(0)).total
    with exact_arithmetic():
        charges = _charges(Identity(price))
        schedule = schedule_of(price, usage.duration_seconds, billing or price.billing_rule)
        total = charges.of_hours(schedule.billed_seconds) * usage.machines
        return total + _others(price, schedule, usage) if charges.others else total


def shared_total(price: Price, usage: Usage) -> Decimal:
    """The total of ``bill.share``; raises InputError as it does."""
    if price.owned is not None or usage.egress_gb:
        return share(price, usage).total
    with exact_arithmetic():
        charges = _charges(Identity(price))
        if not charges.hourly:
            require_hourly_parts(price)
        total = charges.of_hours(usage.duration_seconds) * usage.machines
        if not charges.others:
            return total
        schedule = share_of_a_start(usage.duration_seconds)
        return total + _sum(storage_lines(price, schedule, usage.machines))


# Prices are frozen, and each bills many jobs.
@lru_cache(maxsize=256)
def _charges(identity: Identity[Price]) -> _Charges:
    price = identity.value
    hourly = tuple(part.rate * part.units for part in hourly_parts(price))
    otherwise = any(part.per != "hour" and part.amount is not None for part in price.components)
    return _Charges(hourly, otherwise or price.start.failure_charge > 0)


def _others(price: Price, schedule: Schedule, usage: Usage) -> Decimal:
    stored = storage_lines(price, schedule, usage.machines)
    failed = failure_lines(price, schedule, usage.machines)
    return _sum((*stored, *run_lines(price, usage), *failed))


def _sum(lines: Iterable[Line]) -> Decimal:
    return sum((line.amount for line in lines), Decimal(0))
