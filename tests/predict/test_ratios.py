"""Ratios of withheld accelerators: ranges, probabilities of the better choice, and regret."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from epochcost.predict.design import Placed
from epochcost.predict.ratios import ratio_errors
from predict.tables import FACTS, KNOWN
from predict.test_withheld import learnt

PRICES = {device.id: float(at + 1) for at, device in enumerate(KNOWN.all)}


@pytest.fixture(name="table")
def table_fixture(tmp_path: Path) -> list[Placed]:
    """Synthetic rows of two sources."""
    return learnt(tmp_path)


def test_ratios_of_withheld_accelerators_are_in_their_ranges(table: list[Placed]) -> None:
    """Most ratios are in their ranges, and choices are right more often than not."""
    by_kind = ratio_errors(table, KNOWN, PRICES)
    assert {*by_kind} == {"two accelerators", "two generations", "one source"}
    for errors in by_kind.values():
        assert errors.priced == errors.ratios
        assert errors.coverage > 0.75
        assert errors.brier < 0.25
        assert 0 <= errors.mean_regret_percent < 20
        assert sum(stated.ratios for stated in errors.reliability) == errors.priced
        assert all(0.5 <= stated.probability <= 1 for stated in errors.reliability)


def test_prices_in_another_unit_change_nothing(table: list[Placed]) -> None:
    """Prices seven times as high give the same errors."""
    dearer = {device: 7 * price for device, price in PRICES.items()}
    assert ratio_errors(table, KNOWN, dearer) == ratio_errors(table, KNOWN, PRICES)


def test_without_a_pair_of_prices_there_is_no_choice(table: list[Placed]) -> None:
    """Coverage of ranges needs no prices; a probability needs two priced accelerators."""
    first, *_, last = PRICES
    assert ratio_errors(table, KNOWN, {first: 1.0}) == {}
    two = ratio_errors(table, KNOWN, {first: 1.0, last: 2.0})["two accelerators"]
    every = ratio_errors(table, KNOWN, PRICES)["two accelerators"]
    assert two.coverage == every.coverage
    assert 0 < two.priced < every.priced == two.ratios


def test_one_accelerator_forms_no_pair(table: list[Placed]) -> None:
    """A table of one accelerator has no ratios."""
    alone = [row for row in table if row.device.name == next(iter(FACTS))]
    assert ratio_errors(alone, KNOWN, PRICES) == {}


def test_every_shared_work_of_a_pair_is_a_ratio(table: list[Placed]) -> None:
    """Each model and batch size that two accelerators share is a ratio."""
    pair = [row for row in table if row.device.name in ("A1", "B1")]
    works = [
        replace(row, rate=replace(row.rate, batch=float(batch)))
        for row in pair
        for batch in range(1, 11)
    ]
    assert ratio_errors(works, KNOWN, PRICES)["two accelerators"].ratios == len(works) / 2 > 50
