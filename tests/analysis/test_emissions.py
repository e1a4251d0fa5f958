"""Energy and emissions of a job: metered, declared, or unknown with the reason."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from epochcost.analysis.emissions import energy_by_machine
from epochcost.report.pages.page import Report
from epochcost.specs.reference_data import Grid

GRIDS = {
    name: Grid(id=name, name=name, kg_co2e_per_kwh=Decimal(rate), year=2023, source="a test")
    for name, rate in (("clean", "0.04"), ("dirty", "0.8"))
}


def test_declared_power_is_energy_over_all_grids(report: Report) -> None:
    """The owned machine declares 20 W; the power of rented machines is unknown."""
    rows = [row for row in report.rows if row.observed.workload.id == "net"]
    stated, *unknown = energy_by_machine(replace(report.catalogue, grids=GRIDS), rows)
    assert stated.least is not None
    assert stated.most is not None
    time = stated.row.time("full")
    assert time is not None
    assert abs(stated.least.machines_kwh - 20 * time.mean / 3_600_000) < Decimal("1e-9")
    assert float(stated.most.kg_co2e / stated.least.kg_co2e) == pytest.approx(20)
    assert [entry.least for entry in unknown] == [None] * 3
    reasons = {entry.row.observed.machine.hardware: entry.unknown for entry in unknown}
    assert reasons.keys() == {"box", "crate", "shed"}
    assert "the power of Some GPU is not known" in reasons["box"]
    assert "its power is not known" in reasons["crate"]


def test_without_grids_nothing_is_zero(report: Report) -> None:
    """Without declared grids, emissions are unknown, not zero."""
    rows = [row for row in report.rows if row.observed.workload.id == "net"]
    for entry in energy_by_machine(replace(report.catalogue, grids={}), rows):
        assert entry.least is None
        assert entry.unknown
