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
from epochcost.analysis.tokens import Requests, ServingOffer, api_offers
from epochcost.report.pages import workload
from epochcost.report.pages.page import Report
from epochcost.report.templates import environment, render
from epochcost.report.traffic import FOLDER, SHARED, token_files
from epochcost.specs.decoder import ServedPrecision
from epochcost.specs.loader import load_catalogue
from epochcost.units import money
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
    api = root / "specs/apis/theirs.toml"
    # Machines are cheaper for many requests.
    dear = api.read_text("utf-8").replace("million = 4", "million = 100")
    api.write_text(dear.replace("million = 1\n", "million = 40\n"), "utf-8")
    onnx.save(tiny_decoder(), str(root / "models/tiny.onnx"))
    return Report(read_inputs(load_catalogue(root), [root / "docs/data/results"], root / "docs"))


@pytest.fixture(scope="module", name="page")
def page_fixture() -> Iterator[Page]:
    """An empty page with the script for token costs."""
    with chromium() as browser:
        page = browser.new_page()
        for name in ("shown", "forms", "bill", "tokens"):
            page.add_script_tag(path=ROOT / f"site_templates/assets/{name}.js")
        yield page


def drawn(draw: random.Random) -> Requests:
    """Random traffic, with or without bounds and cached prompts, around the timed range."""
    first, token = (draw.choice((None, Decimal(draw.randint(1, 400)) / 100)) for _ in "ft")
    return Requests(
        Decimal(draw.randint(1, 4000)) / 1000,
        draw.randint(50, 270),
        draw.randint(1, 400),
        first,
        token,
        Decimal(draw.choice(("0", "0.6"))),
    )


def test_the_browser_offers_what_the_engine_offers(page: Page, report: Report) -> None:
    """The same machines and plans at the same cost, within bounds and without."""
    draw, decoders = random.Random(20261124), timed_decoders(report.inputs)
    files = {address: _data(script) for address, script in token_files(report)}
    for address, data in files.items():
        if Path(address).parent != Path(FOLDER):
            continue
        model = Path(address).stem
        of_model = [decoder for decoder in decoders if decoder.model == model]
        for _ in range(_DRAWS):
            traffic = drawn(draw)
            answers = page.evaluate(
                "([data, asked, shared]) => window.epochcostTokens.offers(data, asked, shared)",
                [data, plain(traffic), files[SHARED]],
            )
            machines = [answer for answer in answers if "plan" in answer]
            engine = offers_of(report.catalogue, of_model, traffic)
            assert len(machines) == len(engine)
            for offer, expected in zip(by_cost(machines), sorted(engine, key=order), strict=True):
                agree(offer, expected)
            apis = [api for api in report.catalogue.apis.values() if api.model == model]
            assert sorted(answer["mean"] for answer in answers if "api" in answer) == pytest.approx(
                [float(offer.per_million) for offer in api_offers(apis, traffic)]
            )


def _data(script: str) -> Any:
    return json.loads(script.partition("=")[2].rstrip(";\n"))


def plain(traffic: Requests) -> dict[str, float]:
    """A question as the form sends it; a missing bound becomes one that everything meets."""
    return {
        "rate": float(traffic.per_second),
        "prompt": traffic.prompt,
        "output": traffic.output,
        "first": float(traffic.first_seconds or 10**9),
        "token": float(traffic.token_seconds or 10**9),
        "cached": float(traffic.cached_share),
    }


def by_cost(offers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sort offers by their cost if never idle, which hardly ties."""
    return sorted(offers, key=lambda answer: float(answer["full"]))


def order(offer: ServingOffer) -> Decimal:
    """Sort key of the engine's offers: the cost if never idle."""
    return offer.full.mean


def agree(offer: dict[str, Any], expected: ServingOffer) -> None:
    """Compare one offer of both."""
    assert offer["decoder"]["precision"] == expected.deployment.precision
    assert offer["machines"] == expected.machines
    for key, value in (
        ("low", expected.per_million.low),
        ("mean", expected.per_million.mean),
        ("high", expected.per_million.high),
        ("full", expected.full.mean),
    ):
        assert offer[key] == pytest.approx(float(value), rel=_TOLERANCE), key
    capacity = offer["capacity"]
    assert capacity["sequences"] == expected.capacity.sequences
    assert capacity["first"] == pytest.approx(float(expected.capacity.first.mean), rel=_TOLERANCE)
    assert capacity["token"] == pytest.approx(float(expected.capacity.token.mean), rel=_TOLERANCE)


# Tolerance for published numbers of five digits, and factors that fade with a prompt's length.
_NEAR = 0.03


@pytest.mark.parametrize(
    ("name", "precision", "traffic"),
    [
        ("llama-3.1-8b", "bf16", Requests(Decimal(1), 1000, 200)),
        ("llama-3.1-8b", "bf16", Requests(Decimal("0.1"), 12000, 1)),
        ("llama-3.1-8b", "bf16", Requests(Decimal(5), 256, 128)),
        ("llama-3.1-8b", "bf16", Requests(Decimal(5000), 1, 16)),
        ("qwen3-30b-a3b", "bf16", Requests(Decimal(40), 1000, 200)),
        ("qwen3-30b-a3b", "bf16", Requests(Decimal(2), 3000, 500, Decimal("0.5"), Decimal("0.03"))),
        ("llama-3.1-8b", "fp8", Requests(Decimal(40), 4000, 200, cached_share=Decimal("0.6"))),
        ("llama-3.1-8b", "fp8", Requests(Decimal(5), 100, 300)),
    ],
    ids=["usual", "long", "short", "tiny", "many", "bounds", "cached", "chat"],
)
def test_predicted_machines_cost_what_the_engine_says(
    page: Page, project_report: Report, name: str, precision: ServedPrecision, traffic: Requests
) -> None:
    """Dense models and mixtures, short and long prompts, alone and at full load."""
    files = dict(token_files(project_report, [name]))
    data, timings, shared = (
        _data(files[file])
        for file in (f"{FOLDER}/{name}.js", f"{FOLDER}/{name}/{precision}.js", SHARED)
    )
    data |= {"timings": timings, "precision": precision}
    offers = page.evaluate(
        "([data, asked, shared]) => window.epochcostTokens.offers(data, asked, shared)",
        [data, plain(traffic), shared],
    )
    by_plan = {
        (answer["decoder"]["machine"], answer["plan"]["name"]): answer
        for answer in offers
        if "plan" in answer
    }
    engine = project_report.market.answer(name, traffic, precision).offers
    expected = {}
    for offer in sorted(engine, key=lambda each: -each.capacity.request.mean):
        plan = " ".join(offer.price.provider_and_plan)
        expected[offer.deployment.machine.hardware, plan] = offer
    assert len(expected) > 20
    near = [
        key for key, offer in expected.items() if key in by_plan and _agrees(by_plan[key], offer)
    ]
    # A prompt of a token is extrapolated.
    assert traffic.prompt == 1 or len(near) >= 0.97 * len(expected)
    ratios = [by_plan[key]["full"] / float(expected[key].full.mean) for key in by_plan]
    assert 0.5 < min(ratios) <= max(ratios) < 2


def _agrees(answer: dict[str, Any], offer: ServingOffer) -> bool:
    """Whether an offer's cost if never idle equals the engine's."""
    first, token = (float(time.mean) for time in (offer.capacity.first, offer.capacity.token))
    return (
        answer["full"] == pytest.approx(float(offer.full.mean), rel=_NEAR)
        and answer["decoder"]["precision"] == offer.deployment.precision
        and answer["capacity"]["first"] == pytest.approx(first, rel=0.1)
        and answer["capacity"]["token"] == pytest.approx(token, rel=2 * _NEAR)
        and answer["high"] >= answer["mean"] >= answer["low"]
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
    (page_of_model,) = (entry for entry in workload.pages(report) if entry.uri == "models/tiny.md")
    text = render(environment(ROOT / "site_templates"), page_of_model)
    match = re.search(r"<form [^>]*data-ec-tokens.*?</form>\s*<div [^>]*></div>", text, re.DOTALL)
    assert match is not None
    scripts = "".join(
        f'<script src="{ROOT / "site_templates/assets" / name}.js"></script>'
        for name in ("shown", "forms", "bill", "tables", "tokens")
    )
    (folder / "models").mkdir()
    page = folder / "models/page.html"
    page.write_text(f"<!doctype html><meta charset=utf-8>{match[0]}{scripts}", "utf-8")
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
    assert "a month from They" not in busy
    assert re.search(r"a million tokens \(● measured; .*, price of 20[\d-]+\)", busy)
    assert "requests=25" in tab.url
    assert tab.locator(".ec-calculated > .ec-frame th").first.inner_text().startswith("Machine")
    apis = tab.locator(".ec-calculated > details")
    assert apis.locator("summary").inner_text() == "APIs at this traffic: 1"
    assert apis.locator("td").all_text_contents()[0].startswith("They")
    again = opened(page)
    again.goto(tab.url)
    again.wait_for_selector("[data-state=ready]")
    assert again.locator(".ec-verdict").inner_text() == busy
    again.locator("[name=first]").fill("1")
    assert "a month from They" in again.locator(".ec-verdict").inner_text()
    words = again.locator(".ec-calculated").inner_text()
    assert "No machine has a time within these bounds" in words
    assert "No price list states how fast an API answers." in words
    again.locator("[name=requests]").fill("-1")
    assert again.locator("[name=requests]:invalid").count() == 1


def test_a_batch_costs_what_full_load_costs(page: Page, form: str, report: Report) -> None:
    """A million requests on one machine that is never idle, or at the API; and a month's sum."""
    tab = opened(page)
    tab.goto(f"{form}?count=1000000")
    tab.wait_for_selector("[data-state=ready]")
    answer = report.tokens["tiny"]
    machine, api = min(offer.full.mean for offer in answer.offers), answer.apis[0].per_million
    millions = answer.requests.tokens
    least = min(answer.offers[0].per_million.mean, api)
    month = millions * least * answer.requests.per_second * Decimal("2.628")
    words = tab.locator(".ec-calculated").inner_text()
    assert f"1,000,000 requests as a batch: {money(millions * machine, places=0)} on 1 " in words
    assert f", or {money(millions * api, places=0)} from They" in words
    assert words.startswith(f"{money(month, places=0)} a month")


def test_an_address_fills_in_only_what_a_hand_could(page: Page, form: str) -> None:
    """Other values do not change the form."""
    tab = opened(page)
    tab.goto(f"{form}?requests=-1&prompt=x&answer=1e99&first=&token=%ff&elements=1&length=2")
    tab.wait_for_selector("[data-state=ready]")
    fields = {name: tab.locator(f"[name={name}]").input_value() for name in _FIELDS}
    assert fields == {"requests": "1", "prompt": "200", "answer": "100", "first": "", "token": ""}


def test_the_timed_lengths_say_why_a_machine_is_left_out(page: Page, report: Report) -> None:
    """Beyond the longest timed prompt; not with a prompt that a machine was timed for."""
    (_, common), (_, script), *_ = token_files(report)
    shared, data = _data(common), _data(script)
    ask = """([data, prompt, shared]) => {
      const asked = {rate: 1, prompt: prompt, output: 100, first: Infinity, token: Infinity};
      const offers = window.epochcostTokens.offers(data, asked, shared);
      return window.epochcostTokens.untimed(data, offers, asked);
    }"""
    longest = data["decoders"][0]["longest"]["prefill"]
    expected = f"prompts were timed up to {longest} tokens; yours has 10,000."
    assert page.evaluate(ask, [data, 10_000, shared]).endswith(expected)
    assert page.evaluate(ask, [data, longest, shared]) == ""


@pytest.mark.parametrize(
    ("costs", "sentences"),
    [
        ((0.8, 0.2), ("slow costs about as much as", "fast costs less than")),
        ((0.6, 0.6), ("slow probably costs less than",)),
        ((0.2, 0.1), ("slow costs less than",)),
    ],
)
def test_break_evens_are_told_as_by_the_command(
    page: Page, costs: tuple[float, float], sentences: tuple[str, ...]
) -> None:
    """The first machine that costs as little as the API, and the first that surely costs less."""
    machines = [
        {
            "decoder": {"name": name},
            "plan": {"currency": "USD"},
            "turn": rate,
            "full_low": cost / 2,
            "full": cost,
            "full_high": 2 * cost,
        }
        for name, rate, cost in zip(("fast", "slow"), (6, 2), reversed(costs), strict=True)
    ]
    listed = [{"api": {}, "request": 1, "mean": 1}, *machines]
    text = page.evaluate("listed => window.epochcostTokens.turn(listed, 0.8)", listed)
    told = [f"{sentence} the cheapest API if each machine" for sentence in sentences]
    assert [sentence in text for sentence in told] == [True] * len(told)
    assert text.count("cheapest API") == len(told)
