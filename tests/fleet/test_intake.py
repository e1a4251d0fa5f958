"""The intake of a launch: which files of a machine enter the results of the project."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pytest

from epochcost.fleet.intake import Intake
from epochcost.plan.cell import Cell
from epochcost.results.sidecars import Payment
from epochcost.results.store import ID_DIGITS, write_sidecar
from epochcost.specs.loader import load_catalogue
from tiny_project import write_tiny_project

_PAYMENT = Payment(
    payment_version=1,
    hardware="local",
    trial_id="0123456789abcdef",
    target="desk",
    price="own",
    hourly=Decimal(1),
    currency="USD",
    engine_price=False,
    paid_at=dt.datetime(2026, 11, 28, tzinfo=dt.UTC),
    seconds=60,
    startup_seconds=None,
)


def test_only_valid_files_are_taken_in(tmp_path: Path) -> None:
    """Faulty files stay outside, also those with a name that is not printable or in no folder."""
    staged, results = tmp_path / "staged", tmp_path / "results"
    good = write_sidecar(staged, _PAYMENT)
    for name in ("payments/bad.json", "payments/b\x07.json", "bad.json", "other/bad.json"):
        (staged / "local" / name).parent.mkdir(exist_ok=True)
        (staged / "local" / name).write_text("{}")
    intake = Intake(load_catalogue(write_tiny_project(tmp_path / "project")), results)
    assert intake.take_in(staged, None).startswith("bad.json: ")
    taken = [path.relative_to(results) for path in results.rglob("*.json")]
    assert taken == [good.relative_to(staged)]
    assert "\x07" not in intake.take_in(staged, None)


def test_another_station_may_take_in_files_during_a_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that another thread adds while a cell's files are read does not stop the search."""
    catalogue = load_catalogue(write_tiny_project(tmp_path / "project"))
    cell = Cell(("local", "cpu", ""), _PAYMENT.trial_id, None, 1, swept=True)  # type: ignore[arg-type]
    (tmp_path / "results/local").mkdir(parents=True)
    names = [f"limit-{cell.id[:ID_DIGITS]}-{number}.json" for number in range(3)]
    for name in names[:2]:
        (tmp_path / "results/local" / name).write_text("{}")
    intake = Intake(catalogue, tmp_path / "results")

    def read(*_: object) -> None:
        intake._note([tmp_path / "results/local" / names[2]])
        raise OSError

    monkeypatch.setattr("epochcost.fleet.intake.read_record", read)
    assert intake.result_of(cell) is None
