"""Token costs at a reader's traffic: the browser equals the engine, in Chromium."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import onnx
import pytest
from playwright.sync_api import Page

from analysis.test_tokens import offers_of, phase_result, project
from browsed_site import chromium
from epochcost.analysis.inputs import read_inputs
from epochcost.analysis.phases import timed_decoders
from epochcost.analysis.tokens import Requests, ServingOffer, api_per_million
from epochcost.report.pages import workload
from epochcost.report.pages.page import Report
from epochcost.report.templates import environment, render
from epochcost.report.traffic import SHARED, token_files
from epochcost.specs.loader import load_catalogue
from report.test_tokens import with_room
from report_project import store_results
from tiny_decoders import tiny_decoder

ROOT = Path(__file__).parents[2]
_DRAWS = 50
_FIELDS = ("requests", "prompt", "answer", "first", "token")
# Times are published with nine digits.
_TOLERANCE = 1e-7


@pytest.fixture(scope="module", name="report")
def report_fixture(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """The report of a decoder timed on one machine and offered by an API."""
    root = tmp_path_factory.mktemp("tokens")
    project(root)
    with_room(root)
    store_results(root, [phase_result("decode", 300, many, many / 10) for many in (1, 4)])
    dear = (
        root / "specs/apis/theirs.toml"
    )  # dear enough that machines are cheaper for many requests
    dear.write_text(dear.read_text("utf-8").replace("million = 4", "million = 100"), "utf-8")
    onnx.save(tiny_decoder(), str(root / "models/tiny.onnx"))
    return Report(read_inputs(load_catalogue(root), [root / "docs/data/results"], root / "docs"))


@pytest.fixture(scope="module", name="page")
def page_fixture() -> Iterator[Page]:
    """An empty page with the script for token costs."""
    with chromium() as browser:
        page = browser.new_page()
        for name in ("shown", "bill", "tokens"):
            page.add_script_tag(path=ROOT / f"site_templates/assets/{name}.js")
        yield page


def drawn(draw: random.Random) -> Requests:
    """Random traffic, with or without bounds, within and beyond the timed range."""
    first, token = (draw.choice((None, Decimal(draw.randint(1, 400)) / 100)) for _ in "ft")
    return Requests(
        Decimal(draw.randint(1, 4000)) / 1000,
        draw.randint(50, 270),
        draw.randint(1, 400),
        first,
        token,
    )


def test_the_browser_offers_what_the_engine_offers(page: Page, report: Report) -> None:
    """The same machines and plans at the same cost, within bounds and without."""
    draw, decoders = random.Random(20261124), timed_decoders(report.inputs)
    for address, script in token_files(report):
        if address == SHARED:
            continue
        model = Path(address).stem
        data = json.loads(script.partition("=")[2].rstrip(";\n"))
        own = [one for one in decoders if one.model == model]
        for _ in range(_DRAWS):
            asked = drawn(draw)
            found = page.evaluate(
                "([data, asked]) => window.epochcostTokens.offers(data, asked)",
                [data, plain(asked)],
            )
            machines = [one for one in found if "plan" in one]
            engine = offers_of(report.catalogue, own, asked)
            assert len(machines) == len(engine)
            for said, meant in zip(by_cost(machines), sorted(engine, key=order), strict=True):
                agree(said, meant)
            apis = [one for one in report.catalogue.apis.values() if one.model == model]
            assert sorted(one["mean"] for one in found if "api" in one) == pytest.approx(
                sorted(float(api_per_million(api, asked)) for api in apis)
            )


def plain(asked: Requests) -> dict[str, float]:
    """A question as the form sends it; a missing bound becomes one that everything meets."""
    return {
        "rate": float(asked.per_second),
        "prompt": asked.prompt,
        "output": asked.output,
        "first": float(asked.first_seconds or 10**9),
        "token": float(asked.token_seconds or 10**9),
    }


def by_cost(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sort key: the cost if never idle, which hardly ties."""
    return sorted(found, key=lambda one: float(one["full"]))


def order(offer: ServingOffer) -> Decimal:
    """The engine's offers in the same order."""
    return offer.full.mean


def agree(said: dict[str, Any], meant: ServingOffer) -> None:
    """Compare one offer of both."""
    assert said["decoder"]["precision"] == meant.deployment.precision
    assert said["machines"] == meant.machines
    for key, value in (
        ("low", meant.per_million.low),
        ("mean", meant.per_million.mean),
        ("high", meant.per_million.high),
        ("full", meant.full.mean),
    ):
        assert said[key] == pytest.approx(float(value), rel=_TOLERANCE), key
    capacity = said["capacity"]
    assert capacity["sequences"] == meant.capacity.sequences
    assert capacity["first"] == pytest.approx(float(meant.capacity.first.mean), rel=_TOLERANCE)
    assert capacity["token"] == pytest.approx(float(meant.capacity.token.mean), rel=_TOLERANCE)


# Tolerance for published numbers of five digits, and factors that fade with a prompt's length.
_NEAR = 0.03


@pytest.mark.parametrize(
    "asked",
    [
        Requests(Decimal(1), 1000, 200),
        Requests(Decimal(40), 1000, 200),
        Requests(Decimal(2), 3000, 500, Decimal("0.5"), Decimal("0.03")),
        Requests(Decimal("0.1"), 12000, 1),
    ],
    ids=["usual", "many", "bounds", "long"],
)
@pytest.mark.parametrize("name", ["llama-3.1-8b", "qwen3-30b-a3b"])
def test_predicted_machines_cost_what_the_engine_says(
    page: Page, project_report: Report, name: str, asked: Requests
) -> None:
    """Dense models and mixtures, alone and at full load, on every machine that keeps the bounds."""
    files = {Path(address).name: script for address, script in token_files(project_report, [name])}
    data, shared = (
        json.loads(files[file].partition("=")[2].rstrip(";\n"))
        for file in (f"{name}.js", Path(SHARED).name)
    )
    offers = page.evaluate(
        "([data, asked, shared]) => window.epochcostTokens.offers(data, asked, shared)",
        [data, plain(asked), shared],
    )
    shown = {
        (one["decoder"]["machine"], one["plan"]["name"]): one for one in offers if "plan" in one
    }
    engine = project_report.market.answer(name, asked).offers
    meant = {}
    for offer in sorted(engine, key=lambda each: -each.capacity.request.mean):
        plan = f"{offer.price.provider} {offer.price.plan_words}"
        meant[offer.deployment.machine.hardware, plan] = offer
    assert len(meant) > 20
    near = [key for key, offer in meant.items() if key in shown and _agrees(shown[key], offer)]
    assert len(near) >= 0.97 * len(meant)


def _agrees(one: dict[str, Any], offer: ServingOffer) -> bool:
    """Whether an offer's cost if never idle equals the engine's."""
    first, token = (float(time.mean) for time in (offer.capacity.first, offer.capacity.token))
    return (
        one["full"] == pytest.approx(float(offer.full.mean), rel=_NEAR)
        and one["capacity"]["first"] == pytest.approx(first, rel=0.1)
        and one["capacity"]["token"] == pytest.approx(token, rel=2 * _NEAR)
        and one["high"] >= one["mean"] >= one["low"]
    )


@pytest.fixture(scope="module", name="project_report")
def project_report_fixture(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """The report of this project's tables, without results."""
    cache = tmp_path_factory.mktemp("cache")
    return Report(read_inputs(load_catalogue(ROOT), [], ROOT / "docs", cache=cache))


@pytest.fixture(scope="module", name="form")
def form_fixture(report: Report, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A decoder's form from its page, opened from the disk."""
    folder = tmp_path_factory.mktemp("form")
    (made,) = (one for one in workload.pages(report) if one.uri == "models/tiny.md")
    text = render(environment(ROOT / "site_templates"), made)
    found = re.search(r"<form [^>]*data-ec-tokens.*?</form>\s*<div [^>]*></div>", text, re.DOTALL)
    assert found is not None
    scripts = "".join(
        f'<script src="{ROOT / "site_templates/assets" / name}.js"></script>'
        for name in ("shown", "bill", "tables", "tokens")
    )
    (folder / "models").mkdir()
    page = folder / "models/page.html"
    page.write_text(f"<!doctype html><meta charset=utf-8>{found[0]}{scripts}", "utf-8")
    for address, script in token_files(report):
        (folder / address).parent.mkdir(parents=True, exist_ok=True)
        (folder / address).write_text(script, "utf-8")
    return page.as_uri()


def opened(page: Page) -> Page:
    """Another page of the same browser."""
    browser = page.context.browser
    assert browser is not None
    return browser.new_page()


def test_the_form_answers_and_its_address_asks_again(page: Page, form: str) -> None:
    """A changed field is answered at once; its address gives the same answer."""
    tab = opened(page)
    tab.goto(form)
    tab.wait_for_selector("[data-state=ready]")
    first = tab.locator(".ec-verdict").inner_text()
    tab.locator("[name=requests]").fill("25")
    busy = tab.locator(".ec-verdict").inner_text()
    assert busy != first
    assert "from They" not in busy
    assert "requests=25" in tab.url
    again = opened(page)
    again.goto(tab.url)
    again.wait_for_selector("[data-state=ready]")
    assert again.locator(".ec-verdict").inner_text() == busy
    again.locator("[name=first]").fill("1")
    assert "from They" in again.locator(".ec-verdict").inner_text()
    again.locator("[name=requests]").fill("-1")
    assert again.locator("[name=requests]:invalid").count() == 1


def test_an_address_fills_in_only_what_a_hand_could(page: Page, form: str) -> None:
    """Other values do not change the form."""
    tab = opened(page)
    tab.goto(f"{form}?requests=-1&prompt=x&answer=1e99&first=&token=%ff&elements=1&length=2")
    tab.wait_for_selector("[data-state=ready]")
    asked = {name: tab.locator(f"[name={name}]").input_value() for name in _FIELDS}
    assert asked == {"requests": "1", "prompt": "200", "answer": "100", "first": "", "token": ""}
