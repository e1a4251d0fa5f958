"""The price of an hour: list prices of every machine today, as they were, and what moved."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from epochcost.cost import Usage, share
from epochcost.errors import InputError
from epochcost.specs.catalogue import Catalogue, current_prices, supersedes
from epochcost.specs.hardware import Hardware
from epochcost.specs.price import Price
from epochcost.units import SECONDS_PER_HOUR

_MOST_ELSEWHERE, _MOST_CHIPS = 8, 12
_OLDEST = dt.timedelta(days=60)


@dataclass(frozen=True)
class Listed:
    """A machine; ``hour`` is its cheapest list price on demand in US dollars, ``as_of`` its day."""

    hardware: Hardware
    hour: Decimal | None
    as_of: dt.date | None = None

    @property
    def devices(self) -> int:
        """How many accelerators it has."""
        return sum(one.count for one in self.hardware.accelerators)

    @property
    def gpu_hour(self) -> Decimal | None:
        """The same of each of its accelerators."""
        return self.hour / self.devices if self.hour is not None and self.devices else None


@dataclass(frozen=True)
class Moved:
    """A price that took the place of an older one of the same plan."""

    hardware: Hardware
    price: Price
    before: Decimal
    now: Decimal

    @property
    def change(self) -> Decimal:
        """The relative change of an hour's price."""
        return self.now / self.before - 1


def list_prices(catalogue: Catalogue) -> dict[str, Listed]:
    """Every machine by its id."""
    found = {}
    for name, hardware in catalogue.hardware.items():
        prices = filter(_on_demand, current_prices(catalogue.prices_of(name)))
        hours = [(hour, one.as_of) for one in prices if (hour := hourly(one)) is not None]
        found[name] = Listed(hardware, *min(hours, default=(None, None)))
    return found


def _on_demand(price: Price) -> bool:
    return price.plan == "on-demand" and price.currency == "USD" and not price.assumed


def by_gpu_hour(machines: Sequence[Listed]) -> list[Listed]:
    """Those that have a price of a GPU-hour, the cheapest first."""
    priced = [one for one in machines if one.gpu_hour is not None]
    return sorted(priced, key=lambda one: one.gpu_hour or 0)


def same_accelerator(machines: Sequence[Listed], hardware: Hardware) -> list[Listed]:
    """A machine among the cheapest with the same accelerator; none where it is alone."""
    names = {chip.name for chip in hardware.accelerators}
    same = [one for one in machines if {chip.name for chip in one.hardware.accelerators} == names]
    priced = by_gpu_hour(same)
    own = [one for one in priced if one.hardware is hardware]
    kept = [one for one in priced if one in own or one in priced[:_MOST_ELSEWHERE]]
    return kept if own and len(kept) > 1 else []


def accelerators(machines: Sequence[Listed]) -> list[Listed]:
    """The cheapest GPU-hour of the GPUs that most machines have, the dearest first.

    On a machine with one of them, where there is one. Prices much older than the newest are none of
    today.
    """
    found: dict[str, list[Listed]] = {}
    newest = max((one.as_of for one in machines if one.as_of), default=dt.date.min)
    for one in sorted(by_gpu_hour(machines), key=lambda one: one.devices > 1):
        # A core of a TPU is no GPU.
        gpus = all(chip.compute_capability for chip in one.hardware.accelerators)
        if gpus and one.as_of and newest - one.as_of <= _OLDEST:
            found.setdefault(one.hardware.accelerators[0].name, []).append(one)
    common = sorted(found.values(), key=len, reverse=True)[:_MOST_CHIPS]
    return by_gpu_hour([some[0] for some in common])[::-1]


def past_prices(prices: Sequence[Price]) -> list[tuple[dt.date, Decimal]]:
    """The days and hours of list prices on demand in the region of today's, the oldest first."""
    today = next(filter(_on_demand, current_prices(prices)), None)
    if today is None:
        return []
    known = [today, *(one for one in prices if _on_demand(one) and supersedes(today, one))]
    return sorted((one.as_of, hour) for one in known if (hour := hourly(one)))


def moved_prices(catalogue: Catalogue) -> list[Moved]:
    """The prices that took the place of others, the last first."""
    found = []
    for hardware in catalogue.hardware.values():
        prices = catalogue.prices_of(hardware.id)
        for price in current_prices(prices):
            older = [one for one in prices if supersedes(price, one)]
            before = hourly(max(older, key=lambda one: one.as_of)) if older else None
            now = hourly(price)
            if now is not None and before and now != before and not price.assumed:
                found.append(Moved(hardware, price, before, now))
    return sorted(found, key=lambda one: one.price.as_of, reverse=True)


def hourly(price: Price) -> Decimal | None:
    """What one hour of use costs; None for a plan per vCPU or per run, which has no hour here."""
    if price.owned is not None and price.owned.per_vcpu:
        return None
    return _hour(price, Usage(Decimal(SECONDS_PER_HOUR)))


def owned_hour(price: Price) -> Decimal | None:
    """What one hour of use of an owned machine costs, of one vCPU where the plan is per vCPU.

    None where the plan's figures make no amount of money.
    """
    return _hour(price, Usage(Decimal(SECONDS_PER_HOUR), vcpus=1))


def _hour(price: Price, usage: Usage) -> Decimal | None:
    try:
        return share(price, usage).total
    except InputError:
        return None
