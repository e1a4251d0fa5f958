"""The figure of latency against rate."""

from __future__ import annotations

from pathlib import Path

from epochcost.report.charts.latency import LatencyChart, latency_by_rate
from epochcost.report.pages.page import Report
from report_project import inputs_of, make_result, write_project
from served_results import under_load


def test_every_run_of_a_server_is_drawn_with_its_bound(tmp_path: Path) -> None:
    """Three percentiles of the search and of the run that counts; prices do not repeat them."""
    result = under_load(make_result(mode="inference"))
    report = Report(inputs_of(write_project(tmp_path, [result])))
    figure = latency_by_rate(report.serving, identifier="x", colours=report.colours)
    assert figure is not None
    assert len(figure.table.rows) == 2
    assert isinstance(figure.chart, LatencyChart)
    assert figure.chart.bounds == (0.015,)
    assert "latency" in str(figure.chart.spec())
    assert latency_by_rate([], identifier="x", colours=report.colours) is None
