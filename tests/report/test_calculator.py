"""The calculator's data: timings, price plans and programs for bills."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from bill_programs import run
from calculator_data import data_of, predicted_rows
from epochcost.analysis.inputs import Inputs
from epochcost.cost.bill import quote
from epochcost.cost.lines import Usage
from epochcost.cost.spot import interrupted_at
from epochcost.report.pages import calculator
from epochcost.report.pages.page import Report
from report_project import REPOSITORY, inputs_of, write_project


def offered(data: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """The machine, kind and plan of every timing."""
    for key, jobs in data.items():
        if key != "plans":
            for timing in (*jobs["train"], *jobs["serve"]):
                yield from ((timing["machine"], timing["kind"], plan) for plan in timing["plans"])


def test_every_current_row_with_a_price_is_offered_with_its_plan(report: Report) -> None:
    """Each current row with a cost is offered once; rows without a price are not offered."""
    data = data_of(report)
    expected = [
        (row.observed.machine.hardware, row.observed.kind, row.price.id)
        for row in report.rows
        if row.current and row.price and row.observed.epochs_known
        if row.estimate("epoch" if row.mode == "training" else "million")
    ]
    assert expected
    assert sorted(offered(data)) == sorted(expected)
    assert {plan for _, _, plan in offered(data)} == set(data["plans"]["plans"])


def test_machines_list_only_plans_with_a_program(tmp_path: Path) -> None:
    """A plan with only a fee for each run cannot bill an epoch, so no machine lists it."""
    project = write_project(tmp_path)
    (project / "specs/prices/a-fee.toml").write_text(
        "id = 'a-fee'\nhardware = 'local'\nplan = 'on-demand'\nprovider = 'Fees'\n"
        "source = 'a test'\nas_of = 2026-11-01\n"
        "[[components]]\nlabel = 'fee'\nper = 'run'\namount = 0.01\n"
    )
    shared = data_of(Report(inputs_of(project)))["plans"]
    listed = [plan for machine in shared["machines"].values() for plan in machine["plans"]]
    assert sorted(listed) == sorted(shared["plans"])


def test_the_data_alone_give_the_pages_costs(report: Report) -> None:
    """A plan's published program computes the same cost of the full training as the page."""
    plans = data_of(report)["plans"]["plans"]
    rows = [row for row in report.rows if row.current and row.estimate("full")]
    assert rows
    for row in rows:
        cost, time = row.estimate("full"), row.time("full")
        assert row.price
        assert cost
        assert time
        usage = {"seconds": time.mean, "vcpus": Decimal(row.observed.machine.vcpus or 1)}
        bill = run(plans[row.price.id]["bill"], usage)
        assert abs(bill.total - cost.mean) <= Decimal("1e-9") * cost.mean


def test_a_plan_names_its_unconfirmed_values(tmp_path: Path) -> None:
    """A plan lists the parts that no source confirms; the list is empty if all are confirmed."""
    project = write_project(tmp_path)
    with (project / "specs/prices/box-2026.toml").open("a", encoding="utf-8") as spec:
        spec.write('\nunconfirmed = ["as_of", "billing"]\n')
    plans = data_of(Report(inputs_of(project)))["plans"]["plans"]
    assert plans.pop("box-2026")["unconfirmed"] == "date and billing"
    assert {plan["unconfirmed"] for plan in plans.values()} == {""}


def test_a_spot_plan_of_unknown_rate_has_a_program_for_the_readers_rate(tmp_path: Path) -> None:
    """A program bills any rate of interruptions as the package does; other plans have none."""
    project = write_project(tmp_path)
    with (project / "specs/prices/box-2026.toml").open("r+", encoding="utf-8") as spec:
        text = spec.read().replace('"on-demand"', '"spot"').replace('sustained_use = "gce-n1"', "")
        spec.seek(0)
        spec.write(text)
        spec.truncate()
    inputs = inputs_of(project)
    plans = data_of(Report(inputs))["plans"]["plans"]
    program = plans.pop("box-2026")["interrupted"]
    assert not [plan for plan in plans.values() if "interrupted" in plan]
    totals = []
    for rate in ("0.1", "5"):
        usage = {"seconds": Decimal(36_000), "interruptions.rate_per_hour": Decimal(rate)}
        price = interrupted_at(inputs.catalogue.prices["box-2026"], Decimal(rate))
        engine = quote(price, Usage(Decimal(36_000)), credited=False)
        totals.append(run(program, usage).total)
        assert abs(totals[-1] - engine.total) <= Decimal("1e-9") * engine.total
    assert totals[0] < totals[1]


def test_the_page_finds_the_billed_time_that_is_not_used(report: Report) -> None:
    """The script finds the bill's lines for unused time by the end of their labels."""
    script = (REPOSITORY / "site_templates/assets/calculator.js").read_text("utf-8")
    (end,) = re.findall(r'label\.endsWith\("(.+?)"\)', script)
    price = report.catalogue.prices["box-2016"]
    lines = quote(price, Usage(Decimal(60))).lines
    assert [line.amount for line in lines if line.label.endswith(end)] == [Decimal("0.885")]


def test_questions_name_only_machines_of_the_project(
    report: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A question about a machine that the project does not declare would have no answer."""
    asked = (("here", "net", "a=box&b=local"), ("elsewhere", "net", "runs=3&own=moon"))
    monkeypatch.setattr(calculator, "_QUESTIONS", asked)
    assert calculator.questions(report) == [("here", "calculator.html?model=net&a=box&b=local")]


def test_draws_of_a_list_are_small(inputs: Inputs) -> None:
    """The weights of sixty machines take less than 4 kB compressed, all timings less than 8 kB."""
    report = Report(inputs)
    report.__dict__["rows"] = predicted_rows(inputs, 60)
    data = data_of(report)["net"]
    assert len(data["draws"]) == 1
    sizes = [len(gzip.compress(json.dumps(part).encode())) for part in (data["draws"], data)]
    assert sizes[0] < 4_000
    assert sizes[1] < 8_000
