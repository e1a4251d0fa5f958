"""The calculator's data: which work it offers, and with which plans."""

from __future__ import annotations

import json
from decimal import Decimal

from bill_programs import run
from epochcost.analysis.inputs import Inputs
from epochcost.report.pages.calculator import calculator_data, script
from epochcost.report.pages.page import Report


def test_every_priced_row_is_offered_with_its_plan(inputs: Inputs) -> None:
    """A current row with a cost is in the data once; one without is not."""
    rows = Report(inputs).rows
    data = calculator_data(rows)
    goals = {"training": "epoch", "inference": "million"}
    meant = [
        row
        for row in rows
        if row.current and row.estimate(goals[row.observed.mode])  # type: ignore[arg-type]
    ]
    offered = [
        (work["id"], plan)
        for work in data["works"]
        for timing in work["timings"]
        for plan in timing["plans"]
    ]
    assert len(offered) == len(meant)
    assert {plan for _, plan in offered} == set(data["plans"])


def test_the_data_alone_give_the_pages_costs(inputs: Inputs) -> None:
    """The full training of each row costs the same by the published program."""
    rows = [row for row in Report(inputs).rows if row.current and row.estimate("full")]
    plans = calculator_data(rows)["plans"]
    assert rows
    for row in rows:
        cost, time = row.estimate("full"), row.time("full")
        assert row.price
        assert cost
        assert time
        usage = {"seconds": time.mean, "vcpus": Decimal(row.observed.machine.vcpus or 1)}
        bill = run(plans[row.price.id]["bill"], usage)
        assert abs(bill.total - cost.mean) <= Decimal("1e-9") * cost.mean


def test_the_script_is_data_and_hands_nothing_to_html(inputs: Inputs) -> None:
    """A hostile name stays a string of the data."""
    text = script(Report(inputs).rows)
    head, _, rest = text.partition("=")
    assert head == "window.epochcostCalculator"
    assert json.loads(rest.rstrip(";\n"))["works"]


def test_nothing_is_offered_where_nothing_is_measured() -> None:
    """Without rows the page has no work to offer and nothing to start with."""
    assert calculator_data(()) == {"start": "", "works": [], "plans": {}}
