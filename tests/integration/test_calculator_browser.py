"""The browser's bills and odds equal the engine's, for every kind of plan, in Chromium."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page

import price_plans as plans
from browsed_site import chromium
from calculator_data import data_of, predicted_rows
from epochcost.analysis.inputs import Inputs
from epochcost.analysis.odds import time_draws
from epochcost.analysis.rows import odds_of
from epochcost.cost.bill import quote, share
from epochcost.cost.lines import Quote, Usage
from epochcost.cost.program import bill_program, share_program
from epochcost.errors import InputError
from epochcost.report.pages.page import Report
from epochcost.specs.loader import load_catalogue
from epochcost.specs.price import Price
from report_fixtures import inputs_fixture

__all__ = ["inputs_fixture"]

ROOT = Path(__file__).parents[2]
_DRAWS = 800
# Above this amount doubles cannot represent cents.
_LARGE = Decimal(10**9)
# Doubles have 16 digits, of which sums of differences lose some.
_TOLERANCE = Decimal("1e-7")


@pytest.fixture(scope="module", name="page")
def page_fixture() -> Iterator[Page]:
    """An empty page with the billing script."""
    with chromium() as browser:
        page = browser.new_page()
        for name in ("bill", "odds"):
            page.add_script_tag(path=ROOT / f"site_templates/assets/{name}.js")
        yield page


def billed(page: Page, cases: list[tuple[Any, dict[str, Decimal]]]) -> list[dict[str, Any]]:
    """The browser's bills for published programs and usages."""
    bills = [
        [program, {key: float(value) for key, value in usage.items()}] for program, usage in cases
    ]
    script = "text => JSON.parse(text).map(one => window.epochcostBill.run(one[0], one[1]))"
    answers: list[dict[str, Any]] = page.evaluate(script, json.dumps(bills))
    return answers


def agree(bill: dict[str, Any], engine: Quote) -> None:
    """Compare the browser's total and time with the engine's."""
    for name, expected in (("total", engine.total), ("elapsed_seconds", engine.elapsed_seconds)):
        got = Decimal(repr(bill[name]))
        assert abs(got - expected) <= _TOLERANCE * max(abs(expected), Decimal("1e-6")), (
            name,
            bill,
            engine,
        )


def drawn_plan(draw: random.Random) -> Price:
    """A random rented plan: starts, parts, steps, and the terms of its kind."""
    disk = {"label": "disk", "amount": Decimal("0.1"), "count": 40, "per": "gb-month"}
    kind = draw.choice(("spot", "spot", "on-demand", "savings-plan"))
    return plans.plan(
        plan=kind,
        amount=None if kind == "savings-plan" else Decimal(draw.randint(1, 90_000)) / 1000,
        components=[disk | {"billing": draw.choice((None, "ten-minutes"))}],
        billing=draw.choice(("prorated", "per-second", "whole-hour", "ten-minutes")),
        start={"seconds": Decimal(draw.choice((0, 45))), "billed": draw.random() < 0.5,
               "failure_probability": Decimal(draw.choice(("0", "0.1"))), "failure_charge": 1},
        **_TERMS[kind](draw),
    )  # fmt: skip


def spot_terms(draw: random.Random) -> dict[str, Any]:
    """Interruptions, with a longest start, a free first hour, or neither."""
    pauses = {
        "rate_per_hour": Decimal(draw.choice(("0", "0.02", "0.3", "1.5"))),
        "notice_seconds": Decimal(draw.choice((0, 30, 120))),
        "checkpoint_seconds": Decimal(draw.choice((0, 10, 45))),
        "checkpoint_interval_seconds": draw.choice((None, Decimal(600), Decimal(3600))),
        "restart_seconds": Decimal(draw.choice((0, 90))),
    }
    longest = draw.choice((None, None, Decimal(14_400), Decimal(86_400)))
    free = draw.choice((0, 3600)) if longest is None else 0
    return {
        "interruptions": pauses,
        "maximum_lifetime_seconds": longest,
        "free_if_taken_back_seconds": Decimal(free),
    }


def on_demand_terms(draw: random.Random) -> dict[str, Any]:
    """With or without the discount for a month of use."""
    return {"sustained_use": draw.choice((None, "gce-n1", "gce-n1"))}


def commitment_terms(draw: random.Random) -> dict[str, Any]:
    """A commitment of every machine, or for some at once with a price of those above it."""
    hourly = Decimal(draw.randint(1, 9000)) / 1000
    terms = {
        "term_months": 12,
        "payment": "partial-upfront",
        "upfront": Decimal(draw.randint(1, 50_000)),
        "hourly": hourly,
        "utilisation": Decimal(draw.choice(("1", "0.8"))),
    }
    if draw.random() < 0.7:
        terms["on_demand_hourly"] = hourly + 6
        terms["machines"] = Decimal(draw.randint(1, 20)) / 4
    return {"commitment": terms}


_TERMS = {
    "spot": spot_terms,
    "on-demand": on_demand_terms,
    "savings-plan": commitment_terms,
}


def test_drawn_plans_bill_as_the_engine_bills(page: Page) -> None:
    """Eight hundred plans cost the same in the browser and in the engine, to the cent."""
    draw = random.Random(20161101)
    cases, engines = [], []
    while len(cases) < _DRAWS:
        price, seconds = drawn_plan(draw), Decimal(draw.randint(1, 40_000_000)) / 10
        count, runs = draw.randint(1, 6), draw.randint(1, 4)
        try:
            engines.append(quote(price, Usage(seconds, count, runs=runs), credited=False))
        except InputError:  # interruptions too frequent to finish
            continue
        usage = {"seconds": seconds, "count": Decimal(count), "runs": Decimal(runs)}
        cases.append((bill_program(price), usage))
    for bill, engine in zip(billed(page, cases), engines, strict=True):
        agree(bill, engine)
        if engine.total < _LARGE:
            assert abs(Decimal(repr(bill["total"])) - engine.total) < Decimal("0.005")
    assert sum(engine.total < _LARGE for engine in engines) > 0.9 * _DRAWS


def test_every_price_of_the_catalogue_bills_as_the_engine_bills(page: Page) -> None:
    """Each plan, as a single job and as a share of a longer one."""
    cases, engines = [], []
    for price in load_catalogue(ROOT).prices.values():
        usage = Usage(Decimal(123_456), count=2, vcpus=4)
        asked = {"seconds": Decimal(123_456), "count": Decimal(2), "vcpus": Decimal(4)}
        for make, engine in ((bill_program, quote), (share_program, share)):
            try:
                engines.append(
                    quote(price, usage, credited=False) if engine is quote else share(price, usage)
                )
            except InputError:
                continue
            cases.append((make(price), asked))
    for bill, engine in zip(billed(page, cases), engines, strict=True):
        agree(bill, engine)


def test_a_name_that_a_program_lacks_is_an_error(page: Page) -> None:
    """A damaged program gives an error with the missing name, and no figure."""
    program = bill_program(plans.rented()) | {"values": {}}
    with pytest.raises(Exception, match="no value is called"):
        billed(page, [(program, {"seconds": Decimal(1)})])


# Every timing of the data as an offer, under the first of its plans.
_WEIGHED = """([data, plans, most]) => {
  const ways = data.train.map(timing => {
    const plan = plans[timing.plans[0]], [low, mean, high] = timing.seconds.map(seconds => {
      const usage = { seconds: seconds * data.epochs, vcpus: timing.vcpus };
      const bill = window.epochcostBill.run(plan.bill, usage);
      return { total: bill.total, seconds: bill.elapsed_seconds };
    });
    return { timing, plan, low, mean, high };
  });
  window.epochcostOdds.weigh(ways, data.draws, most, true);
  return ways.map(({ timing, wins, regret, kept, drawn }) => ({
    name: timing.name, wins, regret, kept,
    ratio: window.epochcostOdds.ratio(drawn.total, ways[0].drawn.total),
  }));
}"""


def test_the_browser_draws_what_python_draws(page: Page, inputs: Inputs) -> None:
    """Odds, ratios, regret and limits of a list equal Python's."""
    report, rows = Report(inputs), predicted_rows(inputs)
    report.__dict__["rows"] = rows
    data = data_of(report)
    half = float(rows[2].observed.work("full").time.mean)
    most = {"seconds": half, "total": float(rows[1].estimate("full").mean)}
    shares = page.evaluate(_WEIGHED, [data["net"], data["plans"]["plans"], most])
    choice = rows[0]
    expected = odds_of(choice, rows, "full")
    assert shares[0]["name"] == choice.observed.machine.name
    assert 0.1 < expected.wins < 0.9
    for row, got in zip(rows, shares, strict=True):
        machine, time = row.observed.machine, row.time("full")
        assert got["wins"] == pytest.approx(expected.shares[machine], abs=1e-9)
        # Also of machines that are not the cheapest, such as the reader's own.
        assert got["regret"] == pytest.approx(odds_of(row, rows, "full").regret, rel=1e-6)
        assert got["ratio"] == pytest.approx(expected.ratios.get(machine, (1, 1)), rel=1e-6)
        drawn = float(time.mean) * np.exp(time_draws(row.observed, time))
        assert got["kept"]["seconds"] == pytest.approx((drawn <= half).mean(), abs=1e-9)
        cost = row.draws("full")
        assert got["kept"]["total"] == pytest.approx((cost <= most["total"]).mean(), abs=1e-9)
