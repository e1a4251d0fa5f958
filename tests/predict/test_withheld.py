"""Rows of an accelerator, generation, model or source are withheld and then forecast."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from epochcost.predict.design import Placed
from epochcost.predict.learnt import placed
from epochcost.predict.rates import read_rates
from epochcost.predict.withheld import Errors, Withheld, errors_of, tried
from predict.tables import FACTS, KNOWN, MODELS, PROFILES, rows, write


def learnt(tmp_path: Path, *, graphs: bool = True) -> list[Placed]:
    """Synthetic rows of one source, and rows of another source that are a tenth slower."""
    slower = [
        row | {"source": "others", "value": repr(float(row["value"]) / 1.1)} for row in rows(seed=1)
    ]
    rates = read_rates(write(tmp_path / "t.csv", [*rows(), *slower]))
    return placed(rates, KNOWN, PROFILES if graphs else {})


def errors(rows: list[Placed], withheld: Withheld) -> Errors:
    """The errors of all rows with ``withheld`` left out in turn."""
    errors = errors_of(tried(rows, KNOWN, withheld))
    assert errors is not None
    return errors


@pytest.mark.parametrize("withheld", ["accelerator", "generation", "model", "source"])
def test_intervals_hold_what_was_withheld(tmp_path: Path, withheld: Withheld) -> None:
    """Every row has a forecast, and most intervals contain the row's rate."""
    rows = errors(learnt(tmp_path), withheld)
    assert (rows.rows, rows.refused) == (2 * len(FACTS) * len(MODELS), 0)
    assert rows.coverage > 0.75
    assert rows.median_percent < rows.p90_percent
    assert rows.half_width > 1


def test_a_row_tells_nothing_of_itself(tmp_path: Path) -> None:
    """Rates of a chip that are ten times as high do not change the chip's own forecast."""
    table = learnt(tmp_path)
    chip = [at for at, entry in enumerate(table) if entry.device.name == "C1"]
    before = tried(table, KNOWN, "accelerator")
    for at in chip:
        row = table[at]
        rate = replace(row.rate, per_second=10 * row.rate.per_second)
        table[at] = replace(row, rate=rate)
    after = tried(table, KNOWN, "accelerator")
    assert all(before[at].forecast == after[at].forecast for at in chip)
    assert not any(after[at].covers for at in chip)


def test_a_model_without_a_graph_is_not_asked_for_by_it(tmp_path: Path) -> None:
    """Models without a graph are not forecast when withheld; accelerators still are."""
    table = learnt(tmp_path, graphs=False)
    assert tried(table, KNOWN, "model") == ()
    assert errors_of(tried(table, KNOWN, "source")) is None
    assert errors_of(tried(table, KNOWN, "accelerator")) is not None


def test_a_single_remaining_rate_says_nothing_about_errors(tmp_path: Path) -> None:
    """Of two rates, neither has a forecast from the other, whose range has no ends."""
    table = learnt(tmp_path)
    pair = [row for row in table if row.rate.model == "dense" and row.rate.source == "others"][:2]
    assert [row.forecast for row in tried(pair, KNOWN, "accelerator")] == [None, None]
