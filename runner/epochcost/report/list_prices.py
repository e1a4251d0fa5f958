"""Find each machine's hourly price today, its earlier prices, and the prices that changed."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from operator import itemgetter

from epochcost.analysis.rows import usual_currency
from epochcost.cost.bill import share
from epochcost.cost.lines import Usage
from epochcost.errors import InputError
from epochcost.specs.catalogue import Catalogue, current_prices, supersedes
from epochcost.specs.hardware import Hardware
from epochcost.specs.price import Price
from epochcost.units import FRESH, SECONDS_PER_HOUR

_MOST_ELSEWHERE = 8
_OLDEST = 3 * FRESH
_FIRST_WITH_TENSOR_CORES = 7


@dataclass(frozen=True)
class Listed:
    """A machine and ``hour``, its cheapest on-demand price for an hour (None without a price)."""

    hardware: Hardware
    hour: Decimal | None
    as_of: dt.date | None = None
    currency: str = "USD"

    @property
    def devices(self) -> int:
        """The number of accelerators of the machine."""
        return sum(chip.count for chip in self.hardware.accelerators)

    @property
    def gpu_hour(self) -> Decimal | None:
        """The hourly price of a single accelerator; None without a price or an accelerator."""
        return self.hour / self.devices if self.hour is not None and self.devices else None


@dataclass(frozen=True)
class Moved:
    """A change of a plan's hourly price, from ``before`` to ``now``.

    ``price`` is the first with the new amount, ``since`` the day of the last with the old amount.
    """

    hardware: Hardware
    price: Price
    since: dt.date
    before: Decimal
    now: Decimal

    @property
    def change(self) -> Decimal:
        """The relative change of the hourly price."""
        return self.now / self.before - 1


def list_prices(catalogue: Catalogue) -> dict[str, Listed]:
    """Every machine with its list price in the project's usual currency, by the machine's id."""
    currency = usual_currency(price.currency for price in catalogue.prices.values()) or "USD"
    machines = {}
    for name, hardware in catalogue.hardware.items():
        price, hour = _cheapest_on_demand(catalogue.prices_of(name), currency) or (None, None)
        machines[name] = Listed(hardware, hour, price.as_of if price else None, currency)
    return machines


def _cheapest_on_demand(prices: Iterable[Price], currency: str) -> tuple[Price, Decimal] | None:
    # Of equal prices, such as those of two regions, the newest.
    newest_first = sorted(current_prices(prices), key=lambda price: price.as_of, reverse=True)
    return min(on_demand_hours(newest_first, currency), key=itemgetter(1), default=None)


def on_demand_hours(prices: Iterable[Price], currency: str) -> Iterator[tuple[Price, Decimal]]:
    """Yield each on-demand price in ``currency`` that is still offered, and its amount an hour."""
    for price in prices:
        listed = price.plan == "on-demand" and price.currency == currency
        if listed and not price.assumed and not price.flaw:
            hour = hourly(price)
            if hour is not None:
                yield price, hour


def by_gpu_hour(machines: Sequence[Listed]) -> list[Listed]:
    """The machines whose price for an hour of a GPU is known, cheapest first."""
    priced = [machine for machine in machines if machine.gpu_hour is not None]
    return sorted(priced, key=lambda machine: machine.gpu_hour or 0)


def same_accelerator(machines: Sequence[Listed], hardware: Hardware) -> list[Listed]:
    """The machine ``hardware`` and the cheapest machines with the same accelerators.

    Empty if ``hardware`` has no price, or if no other machine with these accelerators has one.
    """
    names = _accelerator_names(hardware)
    same = [machine for machine in machines if _accelerator_names(machine.hardware) == names]
    priced = enumerate(by_gpu_hour(same))
    listed = [each for at, each in priced if at < _MOST_ELSEWHERE or each.hardware is hardware]
    itself = any(machine.hardware is hardware for machine in listed)
    return listed if itself and len(listed) > 1 else []


def _accelerator_names(hardware: Hardware) -> set[str]:
    return {chip.name for chip in hardware.accelerators}


def accelerators(machines: Sequence[Listed]) -> list[Listed]:
    """For each model of GPU, the machine with the cheapest GPU hour; the dearest model first.

    For each model, only machines with the fewest GPUs are compared. Models without tensor cores,
    and prices more than half a year older than the newest price, are left out.
    """
    by_chip: dict[str, Listed] = {}
    newest = max((machine.as_of for machine in machines if machine.as_of), default=dt.date.min)
    for machine in sorted(by_gpu_hour(machines), key=lambda machine: machine.devices):
        # A core of a TPU has no compute capability.
        chips = machine.hardware.accelerators
        capabilities = [float(chip.compute_capability or 0) for chip in chips]
        gpus = min(capabilities, default=0) >= _FIRST_WITH_TENSOR_CORES
        if gpus and machine.as_of and newest - machine.as_of <= _OLDEST:
            by_chip.setdefault(machine.hardware.accelerators[0].name, machine)
    return by_gpu_hour([*by_chip.values()])[::-1]


def most_rented(machines: Sequence[Listed], number: int) -> list[Listed]:
    """A machine for each of the ``number`` GPU models with the most providers, dearest first."""
    providers: dict[str, set[str]] = {}
    for machine in by_gpu_hour(machines):
        for name in _accelerator_names(machine.hardware):
            providers.setdefault(name, set()).add(machine.hardware.provider)

    def rank(machine: Listed) -> tuple[int, float]:
        chip = machine.hardware.accelerators[0]
        return len(providers[chip.name]), float(chip.compute_capability or 0)

    return by_gpu_hour(sorted(accelerators(machines), key=rank, reverse=True)[:number])[::-1]


def past_prices(prices: Sequence[Price], currency: str) -> list[tuple[dt.date, Decimal]]:
    """A machine's cheapest on-demand price and its predecessors, as days and hourly amounts.

    The result is sorted by day, and empty if no current price is in ``currency``.
    """
    cheapest = _cheapest_on_demand(prices, currency)
    if cheapest is None:
        return []
    dated = [cheapest[0], *(price for price in prices if supersedes(cheapest[0], price))]
    return sorted((price.as_of, hour) for price, hour in on_demand_hours(dated, currency))


def moved_prices(catalogue: Catalogue) -> list[Moved]:
    """The latest change of each current price, the latest first."""
    changes = (
        change
        for hardware in catalogue.hardware.values()
        for price in current_prices(catalogue.prices_of(hardware.id))
        if not price.assumed and (change := _latest_change(catalogue, hardware, price))
    )
    return sorted(changes, key=lambda change: change.price.as_of, reverse=True)


def _latest_change(catalogue: Catalogue, hardware: Hardware, price: Price) -> Moved | None:
    older = [each for each in catalogue.prices_of(hardware.id) if supersedes(price, each)]
    history = [*sorted(older, key=lambda each: each.as_of), price]
    for former, later in list(pairwise(history))[::-1]:
        before, now = hourly(former), hourly(later)
        if before and now is not None and before != now:
            return Moved(hardware, later, former.as_of, before, now)
    return None


def hourly(price: Price, vcpus: int | None = None) -> Decimal | None:
    """The price of an hour of use; a plan per vCPU needs ``vcpus``.

    None without ``vcpus`` for such a plan, without an hourly charge, or for an amount out of range.
    """
    try:
        return share(price, Usage(Decimal(SECONDS_PER_HOUR), vcpus=vcpus)).total
    except InputError:
        return None
