"""Import price tables: compare their rows with the prices of the catalogue.

The module ``imported_specs`` makes the new specs.
"""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from functools import lru_cache
from itertools import groupby
from types import MappingProxyType
from typing import NamedTuple

from epochcost.errors import Fault, InputError, UsageError
from epochcost.specs.base import LARGEST
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.document import display_path
from epochcost.specs.hardware import Hardware
from epochcost.specs.price import Price
from epochcost.specs.prices.tables import ListedPlan, ListedPrice, shown_sku
from epochcost.specs.wording import describe, suggest_or_list

# Full names of providers in specs, by their names in tables.
PROVIDERS: Mapping[str, str] = MappingProxyType(
    {
        "aws": "AWS EC2",
        "gcp": "Google Compute Engine",
        "azure": "Azure",
        "lambda": "Lambda",
        "runpod": "RunPod",
    }
)
_CURRENCY = "USD"
_AMOUNT = re.compile(r"[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]{1,2})?")
# Tables written by programs have binary fractions (0.38000000000000006); price lists print at most
# these digits.
_PRINTED = Context(prec=12)
# Lists print five digits or more; amounts that differ by a smaller share are equal.
_ROUNDING = Decimal("1e-4")


@dataclass(frozen=True)
class ImportRequest:
    """Options of an import: filters for rows, and defaults for columns that tables lack.

    If ``provider`` or ``region`` is set, only rows of that provider or region are imported,
    including machines that have no price in the region yet. No price may be later than ``today``.
    """

    today: dt.date
    provider: str | None = None
    region: str | None = None
    zone: str | None = None
    as_of: dt.date | None = None
    source: str | None = None


class Key(NamedTuple):
    """The identity of a price on a date; tables may not list it twice with different amounts.

    ``region`` is "" for all regions. ``months`` is the term of a commitment, else 0.
    """

    hardware: str
    plan: ListedPlan
    months: int
    region: str
    as_of: dt.date


@dataclass(frozen=True)
class MatchedPrice:
    """A valid row whose machine is in the catalogue.

    ``model`` is the price whose spec is copied. ``previous`` is the amount in the catalogue on the
    row's day, and ``previous_id`` the id of that price; both are None if there is no such price.
    """

    key: Key
    amount: Decimal
    row: ListedPrice
    model: Price
    previous: Decimal | None = None
    previous_id: str | None = None

    @property
    def new(self) -> bool:
        """Whether the catalogue has a different amount for that day, or none."""
        previous = self.previous
        return previous is None or abs(previous - self.amount) > previous * _ROUNDING


@dataclass(frozen=True)
class ImportResult:
    """The outcome of an import: prices of machines in the catalogue, and counts of unused rows.

    ``unmatched`` counts the machine types whose rows were skipped, by the reason. ``faults`` are
    errors in rows.
    """

    prices: tuple[MatchedPrice, ...]
    unmatched: Mapping[str, Counter[str]]
    faults: tuple[Fault, ...]


class _Machines:
    """The machines of the catalogue, by their names in price tables, and their rented prices."""

    def __init__(self, catalogue: Catalogue, request: ImportRequest) -> None:
        self._catalogue, self._request = catalogue, request
        self._provider = _full_name(request.provider, catalogue) if request.provider else None
        self._named: dict[tuple[str, str], set[str]] = defaultdict(set)
        self.prices: dict[tuple[str, str, int], list[Price]] = defaultdict(list)
        for price in catalogue.prices.values():
            months = int(price.commitment.term_months) if price.commitment else 0
            if not price.assumed:
                self.prices[price.hardware, price.plan, months].append(price)
            if price.sku:
                self._named[price.provider, _plain_name(price.sku)].add(price.hardware)
        for machine in catalogue.hardware.values():
            self._named[machine.provider, _plain_name(machine.id)].add(machine.id)

    def wants(self, row: ListedPrice) -> bool:
        """Whether the user requested the provider, region and zone of a row."""
        request = self._request
        same = self._provider is None or self._provider_of(row) == self._provider
        here = request.region is None or row.region in {None, request.region}
        return same and here and (request.zone is None or row.zone in {None, request.zone})

    def match(self, row: ListedPrice) -> tuple[Price, str] | str:
        """Choose the price whose spec is copied for a row.

        Returns the price and the row's region, or the reason why there is no such price.
        """
        name = _plain_name(row.sku)
        ids = self._named.get((self._provider_of(row), name), set()) if name else set()
        if len(ids) != 1:
            reason = "the name of several machines" if ids else "no machine in specs/hardware"
            return reason if name else "a row without a machine type, such as a bare accelerator"
        machine = self._catalogue.hardware[next(iter(ids))]
        if row.accelerators is not None:
            counted = sum(accelerator.count for accelerator in machine.accelerators)
            if not _AMOUNT.fullmatch(row.accelerators) or Decimal(row.accelerators) != counted:
                return "other accelerators than the machine has in specs/hardware"
        return self._nearest(row, machine)

    def _provider_of(self, row: ListedPrice) -> str:
        if row.provider is not None:
            return PROVIDERS.get(row.provider.lower(), row.provider)
        if self._provider is None:
            raise UsageError(
                f"{display_path(row.path)}: --provider is required, as the table does not name it: "
                f"one of {', '.join(PROVIDERS)}"
            )
        return self._provider

    def _nearest(self, row: ListedPrice, machine: Hardware) -> tuple[Price, str] | str:
        """The price whose spec is copied for a row.

        It is the newest price of the same plan and region, or of another if there is none.
        """
        plans = [(row.plan, row.months)] if row.months else [("on-demand", 0), ("spot", 0)]
        rented = [
            price
            for plan in plans
            for price in self.prices[machine.id, *plan]
            if price.provider == machine.provider and price.currency == _CURRENCY
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
            return "a machine without a rented price to copy"
        newest = sorted(models, key=lambda price: price.as_of, reverse=True)
        model = min(newest, key=lambda price: (price.plan != row.plan, price.region != place))
        if _amount(model) is None:
            return "a price with components: change them by hand"
        return model, place or ""


def sort_rows(
    rows: Iterable[ListedPrice | Fault], catalogue: Catalogue, request: ImportRequest
) -> ImportResult:
    """Sort the rows of price tables into matched prices, unmatched rows and faults.

    Raises UsageError if the provider or the date is missing in both the rows and the request, and
    InputError if no row has a machine of the catalogue.
    """
    machines = _Machines(catalogue, request)
    prices: dict[Key, MatchedPrice] = {}
    contradicted: set[Key] = set()
    unmatched: dict[str, Counter[str]] = defaultdict(Counter)
    faults: list[Fault] = []
    for row in rows:
        if isinstance(row, Fault):
            faults.append(row)
        elif machines.wants(row):
            match = machines.match(row)
            if isinstance(match, str):
                unmatched[match][row.sku] += 1
                continue
            try:
                price = _matched(row, *match, request)
            except ValueError as error:
                faults.append(_fault(row, str(error)))
                continue
            first = prices.setdefault(price.key, price)
            if first.amount != price.amount:
                contradicted.add(price.key)
                faults.append(_fault(row, _contradiction(first, row)))
    sound = [prices[key] for key in sorted(prices) if key not in contradicted]
    matches, late_faults = _compared(sound, machines)
    if not matches and not faults and not late_faults:
        raise InputError(_nothing(unmatched))
    return ImportResult(matches, MappingProxyType(unmatched), (*faults, *late_faults))


def _matched(row: ListedPrice, model: Price, region: str, request: ImportRequest) -> MatchedPrice:
    """Match a row to a price of the catalogue.

    Raises ValueError for an invalid amount or a day in the future, and UsageError if neither the
    row nor the request has a date.
    """
    amount, as_of = amount_of(row.amount), row.as_of or request.as_of
    if as_of is None:
        raise UsageError(
            f"{display_path(row.path)}: --as-of DATE is required, as the table does not have the "
            "day of its prices"
        )
    if as_of > request.today:
        raise ValueError(f"expected a day in the past, got {as_of}")
    key = Key(model.hardware, row.plan, row.months, region, as_of)
    return MatchedPrice(key, amount, row, model)


def _contradiction(first: MatchedPrice, row: ListedPrice) -> str:
    key, zones = first.key, first.row.zone != row.zone
    return (
        f"expected one price of {key.hardware} in {key.region or 'any region'} on {key.as_of}, got "
        f"{row.amount} here and {first.row.amount} in "
        f"{display_path(first.row.path)}:{first.row.line}"
        f"{' (zones differ: choose one with --zone)' if zones else ''}"
    )


def amount_of(text: str) -> Decimal:
    """Parse an amount per hour; raises ValueError unless it is a plain decimal above zero."""
    amount = Decimal(text) if _AMOUNT.fullmatch(text) else Decimal(0)
    if not 0 < amount <= LARGEST:
        form = "such as 1234.50, without sign, currency or thousands separator"
        raise ValueError(f"expected a price per hour above 0, {form}, got {describe(text)}")
    return _PRINTED.plus(amount)


def _compared(
    rows: Iterable[MatchedPrice], machines: _Machines
) -> tuple[tuple[MatchedPrice, ...], list[Fault]]:
    """Add to each row the price that was valid on its day.

    That price comes from the catalogue or from an earlier row. Also returns a fault for each row
    that contradicts a price of the same day.
    """
    matches: list[MatchedPrice] = []
    faults: list[Fault] = []
    for (hardware, plan, months, region), series in groupby(rows, lambda row: row.key[:4]):
        dated = [
            (price.as_of, amount, price.id)
            for price in machines.prices[hardware, plan, months]
            if (amount := _amount(price)) is not None and (price.region or "") in {region, ""}
        ]
        for row in series:
            day = row.key.as_of
            earlier = (entry for entry in dated if entry[0] <= day)
            in_force = max(earlier, default=min(dated, default=None))
            since, amount, identifier = in_force or (None, None, None)
            match = replace(row, previous=amount, previous_id=identifier)
            if match.new and since == day:
                demand = f"expected the {amount} of {identifier} of the same day"
                faults.append(_fault(row.row, f"{demand}, got {row.amount}"))
                continue
            if match.new:
                dated.append((day, row.amount, "this import"))
            matches.append(match)
    return tuple(matches), faults


def _amount(price: Price) -> Decimal | None:
    """The amount of a price per hour; None for a price that consists of components."""
    if price.components:
        return None
    if price.commitment is not None and not price.commitment.upfront:
        return price.commitment.hourly
    return price.amount


@lru_cache(maxsize=10_000)  # tables list the same types in every region and zone
def _plain_name(name: str) -> str:
    """A machine type in a normal form: ``Standard_NC6s_v3`` and ``NC6s v3`` give the same text."""
    return re.sub(r"[^a-z0-9.]", "", name.lower().removeprefix("standard_"))


def _full_name(name: str, catalogue: Catalogue) -> str:
    """The name of a provider as the specs spell it."""
    providers = {machine.provider for machine in catalogue.hardware.values()}
    full = PROVIDERS.get(name.lower(), name)
    if full not in providers:
        demand = "--provider: expected a provider of specs/hardware"
        choices = suggest_or_list(name, {*PROVIDERS, *providers})
        raise UsageError(f"{demand}, got {describe(name)}{choices}")
    return full


def _fault(row: ListedPrice, message: str) -> Fault:
    return Fault(display_path(row.path), row.line, 1, f"{shown_sku(row.sku)} {row.plan}: {message}")


def _nothing(unmatched: Mapping[str, Counter[str]]) -> str:
    reasons = "; ".join(f"{names.total():,}: {reason}" for reason, names in unmatched.items())
    return (
        f"expected prices of machines in specs/hardware; found none{reasons and f' ({reasons})'}: "
        "check --provider and --region"
    )
