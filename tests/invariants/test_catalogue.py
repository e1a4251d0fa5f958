"""Properties of the project's own specs, beyond the schema."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pytest

from epochcost.cost.bill import share
from epochcost.cost.lines import Usage
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.loader import load_catalogue
from epochcost.specs.price import Price

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "specs").rglob("*.toml"))
# The first day of EC2's public beta, before any rented price.
FIRST_CLOUD_DAY = dt.date(2006, 8, 25)


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    """The project's catalogue, which loads without a fault."""
    return load_catalogue(ROOT)


def hourly(price: Price) -> Decimal:
    """The cost of an hour of a running machine, all parts."""
    return share(price, Usage(Decimal(3600))).total


def test_every_machine_has_a_price(catalogue: Catalogue) -> None:
    """Only machines of which the source has just a name lack one."""
    unpriced = {name for name in catalogue.hardware if not catalogue.prices_of(name)}
    remarks = [remark for source in catalogue.published.values() for remark in source.remarks]
    assert catalogue.hardware
    assert unpriced == {remark.hardware for remark in remarks if remark.hardware}


def test_every_price_says_where_and_when(catalogue: Catalogue) -> None:
    """A price has a source address and a date in the past."""
    for price in catalogue.prices.values():
        assert len(price.source) >= 20, price.id
        assert FIRST_CLOUD_DAY <= price.as_of <= dt.datetime.now(dt.UTC).date(), price.id


def test_assumptions_are_explained(catalogue: Catalogue) -> None:
    """Assumed prices have notes and no list price; "local" has exactly one plan.

    A part of a machine has a part of a listed price, which the source names.
    """
    assumed = [price for price in catalogue.prices.values() if price.assumed]
    assert [price.hardware for price in assumed].count("local") == 1
    listed = {price.id for price in catalogue.prices.values() if not price.assumed}
    assert all(
        price.owned or price.interruptions or any(list_name in price.source for list_name in listed)
        for price in assumed
    )
    assert all(price.notes and "assumed" in price.notes.casefold() for price in assumed)


def test_price_grows_with_the_machine(catalogue: Catalogue) -> None:
    """Prices in a family are proportional to vCPUs, which reveals slipped digits."""
    for family in ("spot-2017-07", "on-demand-2024-06", "on-demand-2026-08", "spot-2026-08"):
        prices = [catalogue.price(f"n1-highcpu-{size}-{family}") for size in (8, 16, 32, 64)]
        assert len({hourly(price) / (8 * 2**n) for n, price in enumerate(prices)}) == 1


def test_machines_say_their_vcpus(catalogue: Catalogue) -> None:
    """All but the detected one, devices without a host, and those with a reason."""
    silent = [machine for machine in catalogue.hardware.values() if not machine.vcpus]
    assert [machine.id for machine in silent if not machine.detected and not machine.notes] == []


def test_starter_study_is_short(catalogue: Catalogue) -> None:
    """On one provider it measures for less than two minutes."""
    study = catalogue.study("starter")
    sizes = [*(study.training_batch_sizes or ()), *(study.inference_batch_sizes or ())]
    assert len(study.models) * len(sizes) * study.sampling.budget_seconds <= 120
    assert set(study.models) < set(catalogue.models)
