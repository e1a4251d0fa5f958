"""Import price tables: compare their rows with the catalogue; ``new_specs`` writes new prices."""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from epochcost.errors import Fault, InputError, UsageError
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.document import display_path
from epochcost.specs.hardware import Hardware
from epochcost.specs.price import Price
from epochcost.specs.prices.tables import AMOUNT, ListedPlan, ListedPrice, amount_of
from epochcost.specs.wording import got

# Full names of providers in specs, by their names in tables.
PROVIDERS: Mapping[str, str] = {
    "aws": "AWS EC2",
    "gcp": "Google Compute Engine",
    "azure": "Azure",
    "lambda": "Lambda",
    "runpod": "RunPod",
}
_DAY = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")
_CURRENCY = "USD"
# Lists print five digits or more; amounts that differ by a smaller share are equal.
_ROUNDING = Decimal("1e-4")


@dataclass(frozen=True)
class ImportRequest:
    """Facts about a price table that its rows do not state, and the day of the import.

    With ``region``, only rows of this region or without one are imported. Without it, rows of
    regions in which their machine has no price are skipped. ``as_of`` is the day of the prices.
    """

    today: dt.date
    provider: str
    as_of: dt.date
    source: str
    region: str | None = None


class Key(NamedTuple):
    """The key of a price; ``region`` is "" for all regions, ``months`` 0 without a commitment."""

    hardware: str
    plan: ListedPlan
    months: int
    region: str


@dataclass(frozen=True)
class MatchedPrice:
    """A valid row of a price table whose machine is in the catalogue.

    ``previous`` is the catalogue's latest amount for ``key`` up to the table's day, else its first
    amount after that day, else None. For a new amount, the spec of the price ``model`` is copied.
    """

    key: Key
    amount: Decimal
    row: ListedPrice
    model: Price
    previous: Decimal | None = None
    previous_id: str | None = None

    @property
    def new(self) -> bool:
        """Whether the row's amount is new: ``previous`` is None or differs beyond rounding."""
        previous = self.previous
        return previous is None or abs(previous - self.amount) > previous * _ROUNDING


@dataclass(frozen=True)
class ImportResult:
    """Prices of known machines, skipped rows by reason and machine type, and faults of rows."""

    prices: tuple[MatchedPrice, ...]
    unmatched: Mapping[str, Counter[str]]
    faults: tuple[Fault, ...]


class _RowMatcher:
    def __init__(self, catalogue: Catalogue, request: ImportRequest) -> None:
        self._catalogue, self._request = catalogue, request
        self._ids: dict[str, set[str]] = defaultdict(set)
        self._prices: dict[tuple[str, str, int], list[Price]] = defaultdict(list)
        provider = _provider_name_in_specs(request.provider, catalogue)
        # Prices of other providers, or in other currencies, say nothing about a row.
        for price in catalogue.prices.values():
            if price.provider != provider:
                continue
            if price.sku:
                self._ids[_normalized_type_name(price.sku)].add(price.hardware)
            if price.currency == _CURRENCY and not price.assumed:
                self._prices[price.hardware, price.plan, int(price.months)].append(price)
        for machine in catalogue.hardware.values():
            if machine.provider == provider:
                self._ids[_normalized_type_name(machine.id)].add(machine.id)

    def match(self, row: ListedPrice) -> MatchedPrice | str | Fault:
        """Match a row with a price in the catalogue, or return the reason why none matches.

        Returns a fault for an invalid amount, or if the catalogue has another for the same day.
        """
        name = _normalized_type_name(row.sku)
        ids = self._ids[name] if name else set()
        if len(ids) != 1:
            reason = "the name of several machines" if ids else "no machine in specs/hardware"
            return reason if name else "a row without a machine type, such as a bare accelerator"
        machine = self._catalogue.hardware[next(iter(ids))]
        if row.accelerators is not None:
            counted = sum(accelerator.count for accelerator in machine.accelerators)
            if not AMOUNT.fullmatch(row.accelerators) or Decimal(row.accelerators) != counted:
                return "other accelerators than the machine has in specs/hardware"
        nearest = self._price_to_copy(row, machine)
        if isinstance(nearest, str):
            return nearest
        try:
            return self._matched_price(row, *nearest)
        except ValueError as error:
            return row.fault(str(error))

    def _price_to_copy(self, row: ListedPrice, machine: Hardware) -> tuple[Price, str] | str:
        """Choose the price whose spec is copied for a row, and the region of the new price.

        Returns the reason if no price can be copied. ``region`` is "" for all regions.
        """
        plans = [(row.plan, row.months)] if row.months else [("on-demand", 0), ("spot", 0)]
        rented = [price for plan in plans for price in self._prices[machine.id, *plan]]
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
        if _hourly_amount(model) is None:
            return "a price with components: change them by hand"
        return model, place or ""

    def _matched_price(self, row: ListedPrice, model: Price, region: str) -> MatchedPrice:
        """Match a row with the catalogue's amount for the same machine, plan, term and region.

        ``model`` and ``region`` are from ``_price_to_copy``. Raises ValueError if the row's amount
        is invalid, or if the catalogue has another amount for the same day.
        """
        day, key = self._request.as_of, Key(model.hardware, row.plan, row.months, region)
        dated = [
            (price.as_of, amount, price.id)
            for price in self._prices[key[:3]]
            if (amount := _hourly_amount(price)) is not None
            and (price.region or "") in {region, ""}
        ]
        earlier = (entry for entry in dated if entry[0] <= day)
        in_force = max(earlier, default=min(dated, default=None))
        since, previous, identifier = in_force or (None, None, None)
        match = MatchedPrice(key, amount_of(row.amount), row, model, previous, identifier)
        if match.new and since == day:
            demand = f"expected the {previous} of {identifier} of the same day"
            raise ValueError(f"{demand}, got {match.amount}")
        return match


def sort_rows(
    rows: Iterable[ListedPrice | Fault], catalogue: Catalogue, request: ImportRequest
) -> ImportResult:
    """Sort the rows of price tables into matched prices, unmatched rows and faults.

    Raises UsageError if ``request.as_of`` is in the future, or later than every date in the text of
    ``request.source``. Raises InputError if no row names a machine of the catalogue.
    """
    _require_plausible_day(request)
    matcher = _RowMatcher(catalogue, request)
    prices: dict[Key, MatchedPrice] = {}
    contradicted: set[Key] = set()
    unmatched: dict[str, Counter[str]] = defaultdict(Counter)
    faults: list[Fault] = []
    for row in rows:
        if isinstance(row, Fault):
            faults.append(row)
            continue
        if request.region is not None and row.region not in {None, request.region}:
            continue
        match = matcher.match(row)
        if isinstance(match, Fault):
            faults.append(match)
        elif isinstance(match, str):
            unmatched[match][row.sku] += 1
        else:
            first = prices.setdefault(match.key, match)
            if first.amount != match.amount:
                contradicted.add(match.key)
                faults.append(row.fault(_contradiction(first, row)))
    if not prices and not faults:
        raise InputError(_nothing(unmatched))
    sound = tuple(prices[key] for key in sorted(prices) if key not in contradicted)
    return ImportResult(sound, unmatched, tuple(faults))


def _require_plausible_day(request: ImportRequest) -> None:
    if request.as_of > request.today:
        raise UsageError(f"--as-of: expected a day in the past, got {request.as_of}")
    cited = max(_DAY.findall(request.source), default=None)
    if cited is not None and cited < request.as_of.isoformat():
        demand = f"expected {cited} or earlier, the latest day that --source names"
        raise UsageError(f"--as-of: {demand}, got {request.as_of}")


def _contradiction(first: MatchedPrice, row: ListedPrice) -> str:
    key, place = first.key, f"{display_path(first.row.path)}:{first.row.line}"
    return (
        f"expected one price of {key.hardware} in {key.region or 'any region'}, got {row.amount} "
        f"here and {first.row.amount} in {place}"
    )


def _hourly_amount(price: Price) -> Decimal | None:
    """A price's hourly amount; None for owned machines, added components or upfront payments."""
    if price.components:
        return None
    if price.commitment is not None and not price.commitment.upfront:
        return price.commitment.hourly
    return price.amount


@lru_cache(maxsize=10_000)  # tables list the same types in every region and zone
def _normalized_type_name(name: str) -> str:
    """``Standard_NC6s_v3`` and ``NC6s v3`` both become ``nc6sv3``."""
    return re.sub(r"[^a-z0-9.]", "", name.lower().removeprefix("standard_"))


def _provider_name_in_specs(name: str, catalogue: Catalogue) -> str:
    providers = {machine.provider for machine in catalogue.hardware.values()}
    full = PROVIDERS.get(name.lower(), name)
    if full not in providers:
        demand = "--provider: expected a provider of specs/hardware"
        raise UsageError(f"{demand}, {got(name, {*PROVIDERS, *providers})}")
    return full


def _nothing(unmatched: Mapping[str, Counter[str]]) -> str:
    reasons = "; ".join(f"{names.total():,}: {reason}" for reason, names in unmatched.items())
    return (
        f"expected prices of machines in specs/hardware; found none{reasons and f' ({reasons})'}: "
        "check --provider and --region"
    )
