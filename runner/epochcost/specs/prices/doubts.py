"""Find implausible prices of machines; ``api_table`` has the rules for token prices.

Each comparison of two prices has a limit for their factor. The limit is a little above the largest
factor between prices of this repository in November 2026.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import cached_property

from epochcost.specs.findings import Finding
from epochcost.specs.hardware import Hardware
from epochcost.specs.price import Price
from epochcost.statistics import first_by, group_by
from epochcost.units import plain

# Largest factors between a price of a plan and the next. Largest so far: Lambda's A10 rose 2.15
# times from 2023 to 2026, AWS's H100 fell to 1/1.79 from 2023 to 2025, and Google's N1 on spot rose
# 2.22 times in two years.
MOST_RISE, MOST_FALL = Decimal("2.3"), Decimal("1.9")
MOST_SPOT_CHANGE = Decimal("2.5")
# Largest factors between hourly prices of the same accelerator, or of a vCPU, in two or more other
# machines. Largest so far: 2.07 at the same provider (Azure's T4), 4.51 elsewhere (Lambda's V100).
MOST_WITHIN, MOST_ELSEWHERE = Decimal("2.3"), Decimal(5)
# Largest factor by which an accelerator's price per memory bandwidth may leave the range of the
# provider's other accelerators. Largest so far: 1.42 (Azure's part of an A10).
MOST_OUTSIDE = Decimal(2)
FEWEST_OTHERS = 3
# Smallest and largest share of the on-demand price. Seen so far with a commitment: 0.35 to 0.63. On
# spot: 0.21 to 0.6 in us-central1, and down to 0.09 in Google's other regions.
_COMMITTED = Decimal("0.25"), Decimal(1)
PLAN_SHARES: Mapping[str, tuple[Decimal, Decimal]] = {
    "spot": (Decimal("0.08"), Decimal(1)),
    "reserved": _COMMITTED,
    "committed-use": _COMMITTED,
    "savings-plan": _COMMITTED,
}
# Limits for owned machines, which find numbers in thousands, kilowatts or cents. The limits of
# money hold in currencies of a similar value.
_LEAST_WATTS, _LEAST_SHARE_OF_GPUS = Decimal(2), Decimal("0.2")
_LEAST_PURCHASE, _MOST_PER_KWH, _LIKE_DOLLARS = 100, 2, ("USD", "EUR", "GBP", "CHF")
_SHORT = Context(prec=4)


def rented_doubts(
    prices: Iterable[Price], hardware: Mapping[str, Hardware], judged: Collection[str] | None = None
) -> dict[str, Finding]:
    """The reasons why prices of rented machines are implausible, by the id of the price.

    ``judged`` are the ids of the prices that may be reported; None means all. Prices that
    contradict most others are reported first, and then no longer compared with the others.
    """
    listed = {
        price.id: rent
        for price in prices
        if (rent := _hourly_rent(price, hardware[price.hardware]))
    }
    doubts: dict[str, Finding] = {}
    while True:
        market = _RentMarket(listed.values())
        reasons = {
            name: contradictions
            for name, rent in listed.items()
            if (judged is None or name in judged)
            and (contradictions := tuple(market.contradictions(rent)))
        }
        if not reasons:
            return doubts
        most = max(map(len, reasons.values()))
        worst = [listed[name].price for name in reasons if len(reasons[name]) == most]
        newest = dict(sorted((price.hardware, price.as_of) for price in worst))
        for price in worst:
            if price.as_of == newest[price.hardware]:
                doubts[price.id] = Finding((_main_part(price),), "; ".join(reasons[price.id]))
                del listed[price.id]


def _main_part(price: Price) -> str:
    parts = {"amount": price.amount, "commitment": price.commitment}
    return next((name for name, paid in parts.items() if paid is not None), "components")


def owned_doubts(price: Price, machine: Hardware) -> Iterator[Finding]:
    """Yield a finding for each cost or power of an owned machine that has the wrong unit."""
    owned, chips = price.owned, machine.accelerators
    if owned is None:
        return
    vcpus = (machine.vcpus or 1) if owned.per_vcpu else 1
    gpu_watts = sum((chip.power_watts or Decimal(0)) * chip.count for chip in chips)
    watts = max(_LEAST_WATTS, _LEAST_SHARE_OF_GPUS * gpu_watts)
    if owned.power_watts * vcpus < watts:
        message = f"{plain(owned.power_watts)} W is too little for this machine: compare the units"
        yield Finding(("owned", "power_watts"), message)
    if price.currency not in _LIKE_DOLLARS:
        return
    if owned.electricity_per_kwh > _MOST_PER_KWH:
        rate = f"{plain(owned.electricity_per_kwh)} {price.currency}"
        message = f"{rate} is too much for a kilowatt-hour: compare the units"
        yield Finding(("owned", "electricity_per_kwh"), message)
    gpus = sum(chip.count for chip in chips) or 1
    if 0 < owned.purchase * vcpus < _LEAST_PURCHASE * gpus:
        paid = f"{plain(owned.purchase)} {price.currency}"
        message = f"{paid} is too little for this machine: compare the units"
        yield Finding(("owned", "purchase"), message)


@dataclass(frozen=True)
class _HourlyRent:
    """The hourly price of a rented machine, and the parts by which prices are compared.

    ``part`` is the accelerator, else "vCPU", or the machine's id if its vCPUs are unknown.
    """

    price: Price
    amount: Decimal
    part: str
    part_count: int
    gb_per_second: Decimal | None

    @cached_property
    def per_part(self) -> Decimal:
        return self.amount / self.part_count

    @cached_property
    def terms(self) -> tuple[str, str, Decimal]:
        """Plan, currency and months of commitment, which must be equal in comparable prices."""
        return self.price.plan, self.price.currency, self.price.months


def _hourly_rent(price: Price, machine: Hardware) -> _HourlyRent | None:
    hour, chips = hour_of(price), machine.accelerators
    if hour is None:
        return None
    if not chips:
        return _HourlyRent(
            price, hour, "vCPU" if machine.vcpus else machine.id, machine.vcpus or 1, None
        )
    count = sum(chip.count for chip in chips)
    return _HourlyRent(price, hour, chips[0].name, count, chips[0].memory_gb_per_second)


def hour_of(price: Price) -> Decimal | None:
    """All hourly charges for a rented machine; an upfront payment is spread over its term.

    None for an owned machine, for an assumed price, and for a price without hourly parts.
    """
    if price.owned is not None or price.assumed:
        return None
    parts = {
        part.label: part.amount * part.count
        for part in price.components
        if part.amount is not None and part.per == "hour"
    }
    if price.amount is not None:
        parts["compute"] = price.amount
    if price.commitment is not None:
        parts["commitment"] = price.commitment.by_the_hour
    premiums = (
        sum(parts[name] for name in part.of or parts) * part.percent / 100
        for part in price.components
        if part.percent is not None
    )
    return sum(parts.values(), sum(premiums, Decimal(0))) or None


class _RentMarket:
    def __init__(self, rents: Iterable[_HourlyRent]) -> None:
        every = tuple(rents)
        self._of_machine = group_by(every, lambda rent: rent.price.hardware)
        self._of_part = group_by(every, lambda rent: (rent.part, rent.terms))
        self._of_provider = group_by(every, lambda rent: rent.price.provider)
        self._of_region = group_by(every, lambda rent: rent.price.region)

    def contradictions(self, rent: _HourlyRent) -> Iterator[str]:
        yield from self._own_series_contradictions(rent)
        yield from self._other_plan_contradictions(rent)
        yield from self._other_machine_contradictions(rent)
        yield from self._bandwidth_contradictions(rent)
        yield from self._region_contradictions(rent)

    def _same_place(self, rent: _HourlyRent) -> Iterator[_HourlyRent]:
        price = rent.price
        for peer in self._of_machine[price.hardware]:
            regions = {price.region, peer.price.region} - {None}
            if peer is not rent and peer.price.provider == price.provider and len(regions) < 2:
                yield peer

    def _own_series_contradictions(self, rent: _HourlyRent) -> Iterator[str]:
        day = rent.price.as_of
        series = [peer for peer in self._same_place(rent) if peer.terms == rent.terms]
        offer = day, rent.price.region, rent.price.sku
        for peer in series:
            if (peer.price.as_of, peer.price.region, peer.price.sku) == offer:
                yield f"{peer.price.id} states {short(peer.amount)} for the same day: delete one"
        before = [peer for peer in series if peer.price.as_of < day]
        after = [peer for peer in series if peer.price.as_of > day]
        spot = rent.price.plan == "spot"
        rise, fall = (MOST_SPOT_CHANGE,) * 2 if spot else (MOST_RISE, MOST_FALL)
        for peers, most in ((before, (rise, fall)), (after, (fall, rise))):
            for nearest in _nearest_date_by_group(peers, rent, lambda peer: peer.terms):
                yield from _ratio_contradiction(rent, nearest, rent.amount / nearest.amount, most)

    def _other_plan_contradictions(self, rent: _HourlyRent) -> Iterator[str]:
        peers = [peer for peer in self._same_place(rent) if peer.terms != rent.terms]
        for peer in _nearest_date_by_group(peers, rent, lambda peer: peer.terms):
            for cheap, dear in ((rent, peer), (peer, rent)):
                low, high = _plausible_share_range(cheap, dear)
                if not low <= (share := cheap.amount / dear.amount) <= high:
                    yield (
                        f"{short(cheap.amount)} an hour {cheap.price.plan_text} is {short(share)} "
                        f"times the {short(dear.amount)} {dear.price.plan_text} ({peer.price.id})"
                    )

    def _other_machine_contradictions(self, rent: _HourlyRent) -> Iterator[str]:
        peers = [
            peer
            for peer in self._of_part[rent.part, rent.terms]
            if peer.price.hardware != rent.price.hardware
        ]
        # A single other machine does not say which of the two prices is wrong.
        if len({peer.price.hardware for peer in peers}) < 2:
            return
        same_provider = [peer for peer in peers if peer.price.provider == rent.price.provider]
        most = MOST_WITHIN if same_provider else MOST_ELSEWHERE
        ratio, nearest = min(
            (
                (rent.per_part / peer.per_part, peer)
                for peer in _nearest_date_by_group(
                    same_provider or peers, rent, lambda peer: peer.price.hardware
                )
            ),
            key=lambda pair: max(pair[0], 1 / pair[0]),
        )
        yield from _ratio_contradiction(rent, nearest, ratio, (most, most))

    def _bandwidth_contradictions(self, rent: _HourlyRent) -> Iterator[str]:
        # A provider's accelerators, old or new, cost about the same for each GB/s of bandwidth.
        rates = {
            peer.price.id: peer.per_part / peer.gb_per_second
            for peer in self._of_provider[rent.price.provider]
            if peer.terms == rent.terms
            and peer.gb_per_second is not None
            and (peer is rent or peer.price.hardware != rent.price.hardware)
        }
        rate = rates.pop(rent.price.id, None)
        if rate is None or rent.price.plan != "on-demand" or len(rates) < FEWEST_OTHERS:
            return
        low, high = min(rates.values()), max(rates.values())
        if not low / MOST_OUTSIDE < rate < high * MOST_OUTSIDE:
            yield (
                f"{short(rate)} an hour for a GB/s of an accelerator's memory, of "
                f"{rent.price.provider}'s other machines {short(low)} to {short(high)}"
            )

    def _region_contradictions(self, rent: _HourlyRent) -> Iterator[str]:
        region = rent.price.region
        if region is None:
            yield from self._missing_region_contradictions(rent)
            return
        holders = {peer.price.provider for peer in self._of_region[region] if peer is not rent}
        if holders and rent.price.provider not in holders:
            yield f"{region} is a region of {', '.join(sorted(holders))}"

    def _missing_region_contradictions(self, rent: _HourlyRent) -> Iterator[str]:
        plan = [peer for peer in self._same_place(rent) if peer.terms == rent.terms]
        regional = [peer.price for peer in plan if peer.price.region]
        latest = max(regional, key=lambda price: price.as_of, default=None)
        if latest and latest.as_of <= rent.price.as_of:
            yield (
                f"it states no region, so it replaces no price of {latest.region} ({latest.id}): "
                "add the region"
            )


def _nearest_date_by_group(
    rents: Iterable[_HourlyRent], rent: _HourlyRent, group_of: Callable[[_HourlyRent], Hashable]
) -> Collection[_HourlyRent]:
    nearest_first = sorted(rents, key=lambda peer: abs(peer.price.as_of - rent.price.as_of))
    return first_by(nearest_first, group_of)


def _plausible_share_range(cheap: _HourlyRent, dear: _HourlyRent) -> tuple[Decimal, Decimal]:
    (plan, currency, months), (second_plan, second_currency, shorter) = cheap.terms, dear.terms
    if currency == second_currency and second_plan == "on-demand" and plan in PLAN_SHARES:
        return PLAN_SHARES[plan]
    longer = (plan, currency) == (second_plan, second_currency) and months > shorter
    return Decimal(0), Decimal(1) if longer else Decimal("Infinity")


def _ratio_contradiction(
    rent: _HourlyRent, peer: _HourlyRent, ratio: Decimal, limits: tuple[Decimal, Decimal]
) -> Iterator[str]:
    """Yield a message unless ``ratio`` (rent / peer) and its inverse are below their ``limits``."""
    rise, fall = limits
    if not 1 / fall < ratio < rise:
        times = f"{short(ratio)} times" if ratio > 1 else f"1/{short(1 / ratio)} of"
        yield (
            f"{short(rent.per_part)} an hour per {rent.part} is {times} the "
            f"{short(peer.per_part)} of {peer.price.id}"
        )


def short(value: Decimal) -> str:
    """Format a price or ratio with four significant digits."""
    return plain(_SHORT.plus(value))
