"""Tables of rates: units, line numbers of faults, and repeated rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochcost.errors import InputError, SpecError
from epochcost.predict.rates import read_profiles, read_rates, without_repeats
from epochcost.specs.catalogue import Catalogue
from predict.tables import row, rows, write


def test_every_committed_table_is_read(catalogue: Catalogue):
    """All tables of the project have the required columns, numbers and modes."""
    for table in catalogue.tables_of("examples"):
        assert read_rates(catalogue.table_path(table, table.table))
        if table.profiles:
            profiles = read_profiles(catalogue.table_path(table, table.profiles))
            assert all(profile.flops > 0 for profile in profiles.values())


def test_an_iteration_of_a_batch_is_so_many_examples(tmp_path: Path):
    """Milliseconds per batch become examples a second; rates are unchanged.

    Beside times, ``batch`` is that of all devices.
    """
    table = [
        row("dense", "Maker A1", 250.0, unit="ms", batch="8"),
        row("dense", "Maker A1", 250.0, unit="samples/s", batch="8"),
        row("dense", "Maker A1", 20.0, unit="s/epoch", batch="8"),
        row("dense", "Maker A1", 250.0, unit="ms", batch="8") | {"count": "4"},
        row("dense", "Maker A1", 250.0, unit="samples/s", batch="8") | {"count": "4"},
    ]
    rates = read_rates(write(tmp_path / "t.csv", table))
    assert [rate.per_second for rate in rates] == [32, 250, 0.05, 32, 250]
    assert [rate.batch for rate in rates] == [8, 8, 8, 2, 8]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"value": "fast"}, "t.csv:3:1: value: expected a number above 0, got 'fast'"),
        ({"value": "-1"}, "t.csv:3:1: value: expected a number above 0, got '-1'"),
        (
            {"batch": "128 and 256"},
            "t.csv:3:1: batch: expected a number above 0, got '128 and 256'",
        ),
        ({"count": "0.5"}, "t.csv:3:1: count: expected a whole number, got '0.5'"),
        ({"date": "2099-01"}, "t.csv:3:1: date: expected a past year, month or day, such as 2026"),
        ({"date": "2026-02-30"}, "t.csv:3:1: date: expected .*, got '2026-02-30'"),
        ({"date": "1.8.2026"}, "t.csv:3:1: date: expected .*, got '1.8.2026'"),
        ({"date": "2018-2099"}, "t.csv:3:1: date: expected .*, got '2018-2099'"),
        ({"mode": "serve"}, "t.csv:3:1: mode: expected infer or train, got 'serve'"),
    ],
)
def test_a_fault_is_named_with_its_line(tmp_path: Path, change: dict[str, str], message: str):
    """A wrong number, date or mode is reported with file and line."""
    table = [row("dense", "Maker A1", 1.0), row("dense", "Maker A1", 1.0) | change]
    with pytest.raises(InputError, match=message):
        read_rates(write(tmp_path / "t.csv", table))


@pytest.mark.parametrize(("moved", "others"), [("0", "1"), ("1e6", "-2e6")])
def test_a_profile_has_no_negative_counts(tmp_path: Path, moved: str, others: str):
    """Counts of which predictions compute logarithms are at least 1, other counts at least 0."""
    columns = "model,size,flops,matrix_flops,moved,moved_by_grouped,moved_by_others"
    table = tmp_path / "p.csv"
    table.write_text(f"{columns},parameters,products\nm,,1e9,1e9,{moved},0,{others},1e6,50\n")
    with pytest.raises(SpecError, match=r"p\.csv:2:1: moved.*: expected a number above 0, got"):
        read_profiles(table)


def test_all_faults_of_a_table_are_told_at_once(tmp_path: Path):
    """Every unreadable row is reported."""
    bad = row("dense", "Maker A1", 1.0) | {"value": "?"}
    with pytest.raises(SpecError) as caught:
        read_rates(write(tmp_path / "t.csv", [bad, row("dense", "Maker A1", 1.0), bad]))
    assert [fault.line for fault in caught.value.faults] == [2, 4]


def test_repeats_are_one_row_at_their_median(tmp_path: Path):
    """Rows that differ only in value become one; another device count is another row."""
    table = [row("dense", "Maker A1", value) for value in (1.0, 9.0, 2.0)]
    table.append(row("dense", "Maker A1", 5.0, count="2"))
    rates = without_repeats(read_rates(write(tmp_path / "t.csv", table)))
    assert [rate.per_second for rate in rates] == [2.0, 5.0]
    assert len(without_repeats(read_rates(write(tmp_path / "t.csv", rows())))) == len(rows())
