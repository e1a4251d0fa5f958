"""The site of a project in which a machine costs nothing."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from epochcost.report.charts.contest import cost_ratios
from epochcost.report.charts.drawing import Drawer
from epochcost.report.pages.page import Report
from epochcost.report.site import build
from report_project import (
    REPOSITORY,
    inputs_of,
    make_result,
    results_of_rented_machines,
    write_project,
)

_FREE = """
id = "free"
hardware = "crate"
plan = "owned"
provider = "Someone"
source = "a gift"
as_of = 2026-11-01
[owned]
purchase = 0
years = 4
utilisation = 0.25
power_watts = 10
electricity_per_kwh = 0
"""


def test_a_free_machine_has_pages(tmp_path: Path) -> None:
    """Pages name the free machine, and compare no cost with it by a factor."""
    pinned = [
        make_result(
            mode="inference",
            hardware="crate",
            batch_size=1,
            samples=(0.002, 0.0021, 0.002),
            fingerprint="cafe" * 4,
            vcpus=count,
        )
        for count in (1, 2)
    ]
    project = write_project(tmp_path, [*results_of_rented_machines(), *pinned])
    (project / "specs/prices/free.toml").write_text(_FREE, encoding="utf-8")
    inputs = inputs_of(project)
    report = Report(inputs)
    (net,) = [workload for workload in report.workloads if workload.id == "net"]
    serve = report.contests[net]["serve"]
    assert serve.cheapest.cost.mean == Decimal(0)
    assert cost_ratios(serve, identifier="ratio", job="inference") is None
    site = build(inputs, REPOSITORY / "site_templates")
    assert site.pages
    drawing = Drawer(tmp_path / "charts").draw(site.figures["models-net-serve"])
    assert "NaN" not in drawing.svg
    for text in site.pages.values():
        assert "Infinity" not in text
        assert "NaN" not in text
