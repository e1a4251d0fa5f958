"""Which machine and price of the catalogue a row of a price table speaks of, and what it says."""

from __future__ import annotations

import datetime as dt
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import lru_cache
from typing import NamedTuple

from epochcost.errors import UsageError
from epochcost.specs.base import LARGEST
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.document import display_path
from epochcost.specs.hardware import Hardware
from epochcost.specs.price import Price
from epochcost.specs.prices.tables import ListedPlan, ListedPrice
from epochcost.specs.wording import describe, suggest_or_list

# What tables call the providers that specs name in full.
PROVIDERS: Mapping[str, str] = {
    "aws": "AWS EC2",
    "gcp": "Google Compute Engine",
    "azure": "Azure",
    "lambda": "Lambda",
    "runpod": "RunPod",
}
_AMOUNT = re.compile(r"[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]{1,2})?")
# Tables written by programs hold binary fractions (0.38000000000000006); beyond these digits is
# noise, and no price list prints so many.
_PRINTED = Context(prec=12)


@dataclass(frozen=True)
class ImportRequest:
    """What to take from the tables, and what to say of rows that do not say it themselves.

    ``provider`` and ``region``: take these only, and prices of machines that are new in the region.
    ``today``: no price is younger.
    """

    today: dt.date
    provider: str | None = None
    region: str | None = None
    zone: str | None = None
    plans: tuple[ListedPlan, ...] = ("on-demand", "spot")
    as_of: dt.date | None = None
    source: str | None = None
    currency: str = "USD"

    def wants(self, row: ListedPrice) -> bool:
        """Whether a row is of the plans, region and zone that are asked for."""
        elsewhere = self.region is not None and row.region not in {None, self.region}
        other_zone = self.zone is not None and row.zone not in {None, self.zone}
        return row.plan in self.plans and not elsewhere and not other_zone


class Match(NamedTuple):
    """The price that a new one is written after, and the region that it is for."""

    model: Price
    region: str | None


class MachineIndex:
    """The catalogue's machines by the names that tables have for them, and their rented prices."""

    def __init__(self, catalogue: Catalogue, request: ImportRequest) -> None:
        self._catalogue, self._request = catalogue, request
        self._provider = _provider(request.provider, catalogue) if request.provider else None
        self._named: dict[tuple[str, str], set[str]] = defaultdict(set)
        self.prices: dict[tuple[str, str], list[Price]] = defaultdict(list)
        for price in catalogue.prices.values():
            self.prices[price.hardware, price.plan].append(price)
            if price.sku:
                self._named[price.provider, _plain_name(price.sku)].add(price.hardware)
        for machine in catalogue.hardware.values():
            self._named[machine.provider, _plain_name(machine.id)].add(machine.id)

    def match(self, row: ListedPrice) -> Match | str:
        """The price that a row continues or is written after, else why it has none."""
        name = _plain_name(row.sku)
        ids = self._named.get((self._provider_of(row), name), set()) if name else set()
        if len(ids) != 1:
            reason = "the name of several machines" if ids else "no machine in specs/hardware"
            return reason if name else "a row without a machine type, such as a bare accelerator"
        machine = self._catalogue.hardware[next(iter(ids))]
        if not _same_accelerators(row, machine):
            return "other accelerators than the machine has in specs/hardware"
        return self._model(row, machine)

    def wants(self, row: ListedPrice) -> bool:
        """Whether a row is of the provider, plans, region and zone that are asked for."""
        elsewhere = self._provider is not None and self._provider_of(row) != self._provider
        return not elsewhere and self._request.wants(row)

    def _provider_of(self, row: ListedPrice) -> str:
        if row.provider is not None:
            return PROVIDERS.get(row.provider.lower(), row.provider)
        if self._provider is None:
            raise UsageError(
                f"{display_path(row.path)}: --provider is required, as the table does not name it: "
                f"one of {', '.join(PROVIDERS)}"
            )
        return self._provider

    def _model(self, row: ListedPrice, machine: Hardware) -> Match | str:
        """The newest price of the same plan and place, else the one that is nearest to it."""
        rented = [
            price
            for plan in ("on-demand", "spot")
            for price in self.prices[machine.id, plan]
            if price.provider == machine.provider and price.currency == self._request.currency
        ]
        region = row.region or self._request.region
        regions = {price.region for price in rented if price.region is not None}
        if regions and region is None:
            return "priced by region, which the table does not name: give --region"
        if regions and region not in regions and self._request.region is None:
            return "a region in which the machine has no price"
        place = region if regions else None
        models = [price for price in rented if (price.region is None) == (place is None)]
        if not models:
            return "a machine without a rented price to write one after"
        return _in_one_amount(min(models, key=_farness(row.plan, place)), place)


def _farness(plan: ListedPlan, region: str | None) -> Callable[[Price], tuple[bool, bool, int]]:
    """Orders prices by plan, then place, then age: the least is the nearest to follow."""
    return lambda price: (price.plan != plan, price.region != region, -price.as_of.toordinal())


def _in_one_amount(model: Price, region: str | None) -> Match | str:
    if model.amount is None or model.components:
        return "priced in parts: change its components by hand"
    return Match(model, region)


def amount_of(text: str) -> Decimal:
    """An amount per hour; raises ValueError for anything but a plain decimal above zero."""
    amount = Decimal(text) if _AMOUNT.fullmatch(text) else Decimal(0)
    if not 0 < amount <= LARGEST:
        form = "such as 1234.50, without sign, currency or thousands separator"
        raise ValueError(f"expected a price per hour above 0, {form}, got {describe(text)}")
    return _PRINTED.plus(amount)


def date_of(row: ListedPrice, request: ImportRequest) -> dt.date:
    """The day of a row's price; raises ValueError where it is to come, UsageError where unsaid."""
    as_of = row.as_of or request.as_of
    if as_of is None:
        raise UsageError(
            f"{display_path(row.path)}: --as-of DATE is required, as the table does not say of "
            "which day its prices are"
        )
    if as_of > request.today:
        raise ValueError(f"expected a day that has been, got {as_of}")
    return as_of


def source_of(row: ListedPrice, request: ImportRequest) -> str:
    """Where a row's price was read; raises UsageError where nobody says."""
    source = row.source or request.source
    if source is None:
        raise UsageError(
            f"{display_path(row.path)}: --source is required, as the table does not say where "
            "it was read: a repository with its commit and path, or an address"
        )
    return source


def _same_accelerators(row: ListedPrice, machine: Hardware) -> bool:
    if row.accelerators is None:
        return True
    counted = sum(one.count for one in machine.accelerators)
    return bool(_AMOUNT.fullmatch(row.accelerators)) and Decimal(row.accelerators) == counted


@lru_cache(maxsize=10_000)  # tables list the same types in every region and zone
def _plain_name(name: str) -> str:
    """A machine type without what lists write differently: ``Standard_NC6s_v3``, ``NC6s v3``."""
    return re.sub(r"[^a-z0-9.]", "", name.lower().removeprefix("standard_"))


def _provider(name: str, catalogue: Catalogue) -> str:
    known = {machine.provider for machine in catalogue.hardware.values()}
    full = PROVIDERS.get(name.lower(), name)
    if full not in known:
        demand = "--provider: expected a provider of specs/hardware"
        choices = suggest_or_list(name, {*PROVIDERS, *known})
        raise UsageError(f"{demand}, got {describe(name)}{choices}")
    return full
