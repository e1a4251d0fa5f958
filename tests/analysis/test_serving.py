"""Load scenarios on a model's page: rate, latency, and cost of a million."""

from __future__ import annotations

import html
from decimal import Decimal
from pathlib import Path

from epochcost.analysis.observations import observe
from epochcost.analysis.serving import ServingRow, serving_rows
from epochcost.cost.bill import in_constant_use
from epochcost.cost.estimate import Estimate, MachineTime, Time, Unpriced
from epochcost.plan.work import Load
from epochcost.report.site import build
from report_project import REPOSITORY, cells, inputs_of, make_result, write_project
from served_results import under_load


def only_row(folder: Path, *, meets_bound: bool) -> ServingRow:
    """The single row of a server's result."""
    (row,) = serving_rows(
        inputs_of(write_project(folder, [under_load(make_result(), kept=meets_bound)]))
    )
    return row


def test_a_million_costs_the_time_that_its_rate_takes(tmp_path: Path) -> None:
    """At 500 samples per second a million takes 2000 s of the machine."""
    row = only_row(tmp_path, meets_bound=True)
    assert isinstance(row.million, Estimate)
    assert row.run is not None
    assert row.load == "server, 99 % within 15 ms"
    assert row.batching == "up to 32 together, after at most 1 ms"
    assert row.mark == "measured, price assumed"
    assert row.price is not None
    work = MachineTime(Time.exact(Decimal(2000)), 2, shared=True)
    assert row.million == work.cost(in_constant_use(row.price))


def test_an_offline_scenario_is_a_job_of_an_owned_machine(tmp_path: Path) -> None:
    """A million samples sent at once cost what the plan's utilisation makes of their hours."""
    result = under_load(make_result(), load=Load(scenario="offline"))
    (row,) = serving_rows(inputs_of(write_project(tmp_path, [result])))
    work = MachineTime(Time.exact(Decimal(2000)), 2, shared=True)
    assert row.million == work.cost(row.price)


def test_a_bound_that_nothing_keeps_has_no_price(tmp_path: Path) -> None:
    """The row has a state and no figure."""
    row = only_row(tmp_path, meets_bound=False)
    assert row.million == Unpriced("no rate meets the bound")
    assert row.run is None


def test_scenarios_stand_apart_from_full_batches(tmp_path: Path) -> None:
    """They have a separate part of the page, and are in no list of full batches."""
    results = [make_result(), under_load(make_result())]
    inputs = inputs_of(write_project(tmp_path, results))
    (measured,) = (row for row in observe(inputs) if row.kind == "measured")
    (served,) = serving_rows(inputs)
    assert (measured.mode, measured.software) == ("training", served.software)
    page = html.unescape(build(inputs, REPOSITORY / "site_templates").pages["models/net.md"])
    assert "Under load: requests that arrive at random" in page
    (line,) = (line for line in page.splitlines() if "server, 99 % within" in line)
    assert cells(line)[4:8] == ["51 ms", "91 ms", "100 ms", "500"]
    silent = html.unescape(build(inputs, REPOSITORY / "site_templates").pages["models/silent.md"])
    assert "Under load: requests that arrive at random" not in silent
