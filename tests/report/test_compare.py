"""The data of the page "Compare"."""

from __future__ import annotations

import json

from epochcost.report.pages.compare import comparison_data, pairs, script
from epochcost.report.pages.page import Report


def test_a_cost_holds_until_its_plan_has_a_newer_price(report: Report) -> None:
    """The price of 2016 ends where that of 2026 begins, so that any two days can be compared."""
    offers = [
        (offer["from"], offer["until"])
        for work in comparison_data(report)["works"]
        if work["model"] == "net" and work["kind"] == "published" and work["goal"] == "epoch"
        for offer in work["offers"]
    ]
    assert sorted(offers, key=str) == [("2016-11-01", "2026-07-01"), ("2026-07-01", None)]


def test_the_current_offer_is_the_sites_own_cost(report: Report) -> None:
    """What the browser calls today's price is a row's of the site, to the digit."""
    shown = {
        float(estimate.mean)
        for row in report.rows
        if (estimate := row.estimate("epoch")) is not None
    }
    today = {
        offer["cost"]
        for work in comparison_data(report)["works"]
        for offer in work["offers"]
        if work["goal"] == "epoch" and offer["until"] is None
    }
    assert today
    assert today <= shown


def test_pairs_count_who_is_cheaper_over_the_common_jobs(report: Report) -> None:
    """Both machines of the net: its epoch and its full training, cheaper on the assumed price."""
    (pair,) = pairs(report)
    assert pair.jobs == 2
    cheaper = (
        pair.first_cheaper if pair.first.hardware == "local" else pair.jobs - pair.first_cheaper
    )
    assert cheaper == 2
    assert pair.least <= pair.most


def test_the_script_is_one_assignment(report: Report) -> None:
    """A page opened from the disk can load it."""
    text = script(report)
    assert json.loads(text.removeprefix("window.epochcostCompare=").removesuffix(";\n"))["works"]
