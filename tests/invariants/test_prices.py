"""Consistency of the real prices: over time, between plans, sizes and kinds of GPU."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterator, Mapping
from decimal import Decimal
from itertools import combinations, pairwise
from pathlib import Path

import pytest

from epochcost.cost.bill import quote
from epochcost.cost.lines import Usage
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.loader import load_catalogue
from epochcost.specs.price import Price

HOUR = Usage(Decimal(3600))
YEAR = dt.timedelta(days=366)
# Dollars for an hour of one GPU with its share of the host, from the cheapest known spot price to
# the dearest machine with one GPU: wide enough for markets, too narrow for a slipped digit.
GPU_HOUR = {
    "GRID K520": ("0.3", "1.5"),
    "Tesla K80": ("0.1", "1.5"),
    "Tesla P100": ("0.3", "2.5"),
    "Tesla V100": ("0.4", "4.5"),
    "Tesla T4": ("0.15", "1.6"),
    "A10G": ("0.3", "2.5"),
    "A10": ("0.4", "3.5"),
    "L4": ("0.15", "1.8"),
    "L40S": ("0.8", "4"),
    "RTX A6000": ("0.4", "1.5"),
    "Quadro RTX 6000": ("0.3", "1.5"),
    "RTX PRO 6000": ("1.5", "5"),
    "A100": ("0.7", "5.5"),
    "H100": ("1.5", "13"),
    "GH200": ("1.2", "5"),
    "H200": ("3", "12"),
    "B200": ("4", "16"),
    "B300": ("8", "20"),
}


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    """The project's catalogue."""
    return load_catalogue(Path(__file__).parents[2])


def hourly(price: Price) -> Decimal:
    """The cost of an hour, all parts together."""
    return quote(price, HOUR).total


def rented(catalogue: Catalogue) -> Iterator[Price]:
    """On-demand and spot prices."""
    return (price for price in catalogue.prices.values() if price.plan in {"on-demand", "spot"})


def plans(catalogue: Catalogue) -> Mapping[tuple[str, ...], list[Price]]:
    """The prices of each plan in each place, oldest first."""
    by_plan: dict[tuple[str, ...], list[Price]] = defaultdict(list)
    for price in sorted(rented(catalogue), key=lambda price: price.as_of):
        place = price.region or ""
        by_plan[price.hardware, price.plan, price.sku or "", place, price.currency].append(price)
    return by_plan


def kind_of(name: str) -> str | None:
    """The kind of GPU in the table of bounds."""
    kinds = [kind for kind in GPU_HOUR if name == kind or name.startswith(f"{kind} ")]
    return max(kinds, key=len, default=None)


def test_hour_of_a_gpu_is_in_bounds(catalogue: Catalogue) -> None:
    """The hourly price of a machine, divided by its GPUs, is within the bounds."""
    judged = 0
    for price in rented(catalogue):
        for gpus in catalogue.machine(price.hardware).accelerators:
            kind = kind_of(gpus.name)
            if kind is None:
                assert gpus.name.startswith("TPU"), f"{price.id}: no bounds for {gpus.name}"
                continue
            low, high = map(Decimal, GPU_HOUR[kind])
            assert low <= hourly(price) / gpus.count <= high, price.id
            judged += 1
    assert judged >= 90


def test_hour_of_a_vcpu_is_in_bounds(catalogue: Catalogue) -> None:
    """A vCPU of a machine without accelerators costs 0.5 to 6 cents an hour."""
    for price in rented(catalogue):
        machine = catalogue.machine(price.hardware)
        if machine.vcpus and not machine.accelerators:
            cents = 100 * hourly(price) / machine.vcpus
            assert Decimal("0.5") <= cents <= 6, price.id


def test_spot_is_at_most_on_demand(catalogue: Catalogue) -> None:
    """A spot price is at most the on-demand price of machine and region in the same year."""
    pairs = 0
    for first, second in combinations(rented(catalogue), 2):
        spot, dear = (first, second) if first.plan == "spot" else (second, first)
        same = (spot.hardware, spot.currency) == (dear.hardware, dear.currency)
        here = None in {spot.region, dear.region} or spot.region == dear.region
        if same and here and spot.plan != dear.plan and abs(spot.as_of - dear.as_of) < YEAR:
            assert hourly(spot) <= hourly(dear), spot.id
            pairs += 1
    assert pairs >= 15


def test_more_gpus_cost_more(catalogue: Catalogue) -> None:
    """In one list, n times the GPUs cost at least n-1 and at most three n times as much.

    Hosts differ in size, and lists give small discounts. Prices with a separately priced host are
    excluded.
    """
    lists: dict[tuple[object, ...], list[tuple[int, Decimal, str]]] = defaultdict(list)
    for price in rented(catalogue):
        for gpus in () if price.components else catalogue.machine(price.hardware).accelerators:
            of = (price.source, price.as_of, price.plan, price.region, gpus.name)
            lists[of].append((gpus.count, hourly(price), price.id))
    compared = 0
    for machines in lists.values():
        for (few, cheap, _), (many, dear, name) in combinations(sorted(machines), 2):
            if many > few:
                ratio = Decimal(many) / few
                assert cheap * (ratio - 1) <= dear <= cheap * ratio * 3, name
                compared += 1
    assert compared >= 15


def test_what_ended_is_marked(catalogue: Catalogue) -> None:
    """A price with a successor of another amount ends before it, and an end has a successor.

    An unknown end is not stated; with a stated end no later price overlaps.
    """
    ended = 0
    for dated in plans(catalogue).values():
        for older, newer in pairwise(dated):
            assert older.as_of < newer.as_of, newer.id
            if older.valid_until is not None:
                assert older.valid_until < newer.as_of, older.id
                ended += 1
        last = dated[-1]
        assert last.valid_until is None or last.valid_until < dt.datetime.now(dt.UTC).date()
    assert ended >= 4


def test_unpublished_days_are_owned_up_to(catalogue: Catalogue) -> None:
    """A price without a published day says so in unconfirmed, with the reason in notes."""
    undated = [price for price in rented(catalogue) if "skypilot-catalog" in price.source]
    assert len(undated) >= 10
    assert all("as_of" in price.unconfirmed and price.notes for price in undated)


def test_machines_of_google_have_the_discount_of_their_kind(catalogue: Catalogue) -> None:
    """All N1 machines on demand and the GPUs attached to them have it since 2018, and no others."""
    named = {
        price.id
        for price in catalogue.prices.values()
        if price.provider == "Google Compute Engine"
        and price.plan == "on-demand"
        and price.hardware.startswith("n1-")
        and price.as_of.year >= 2018
    }
    discounted = {price.id for price in catalogue.prices.values() if price.sustained_use}
    assert named == discounted
