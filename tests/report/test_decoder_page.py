"""The page of a language model with predicted machines: answers, lists and jobs."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from bill_programs import run
from calculator_data import data_of
from epochcost.analysis.inputs import read_inputs
from epochcost.analysis.observations import Workload
from epochcost.analysis.tokens import MOST_BUSY, api_offers
from epochcost.execute.folders import optional_cache_folder
from epochcost.report.charts.load import load_figure
from epochcost.report.pages import decoder
from epochcost.report.pages.model import about_model
from epochcost.report.pages.page import TUNING, Report
from epochcost.report.templates import environment, render
from epochcost.report.wording import render_cost
from epochcost.specs.loader import load_catalogue

ROOT = Path(__file__).parents[2]
SHOWN = "llama-3.1-8b", "llama-3.1-70b", "deepseek-v3", "gpt2-decoder"


@pytest.fixture(scope="module", name="report")
def report_fixture() -> Report:
    """The project with few models and without results."""
    catalogue = load_catalogue(ROOT)
    few = replace(catalogue, models={name: catalogue.models[name] for name in SHOWN})
    return Report(read_inputs(few, [], ROOT / "docs", optional_cache_folder("answers")))


@pytest.fixture(scope="module", name="workload")
def workload_fixture(report: Report) -> Workload:
    """A model of eight billion parameters."""
    return Workload.of_model(report.catalogue.models["llama-3.1-8b"])


@pytest.fixture(scope="module", name="data")
def data_fixture(report: Report) -> dict[str, Any]:
    """The data of the calculator."""
    return data_of(report)


@pytest.fixture(scope="module", name="page")
def page_fixture(report: Report, workload: Workload) -> str:
    """The text of the model's page."""
    return _page_of(report, workload)


def _page_of(report: Report, workload: Workload) -> str:
    model = report.catalogue.models[workload.id]
    page_of_model = decoder.page(report, about_model(report, workload), model)
    return html.unescape(render(environment(ROOT / "site_templates"), page_of_model))


def test_answers_come_first(page: str) -> None:
    """Self-hosting, API and fine-tuning each have an amount, before charts and lists."""
    answer = page.partition('<div class="ec-answer">')[2].partition("</div>")[0]
    begins = [re.sub("<[^>]*>", "", part)[:9] for part in answer.split("<p>")[1:]]
    assert begins == ["Self-host", "By API, t", "Fine-tune"]
    assert answer.count("<strong>$") == 3
    assert page.index("ec-answer") < page.index("<figure") < page.index("## Machines")


def test_the_form_says_that_it_needs_javascript(page: str) -> None:
    """Without JavaScript, a command is named above the form."""
    words = page.partition("<noscript>")[2].partition("</noscript>")[0]
    assert "epochcost tokens --model llama-3.1-8b" in " ".join(words.split())
    assert page.index("<noscript>") < page.index("data-ec-tokens")


def test_a_model_is_priced_in_its_published_precision(page: str, report: Report) -> None:
    """DeepSeek-V3 is published in fp8, and Llama 3.1 in bf16."""
    model = report.catalogue.models["deepseek-v3"]
    about = about_model(report, Workload.of_model(model))
    rendered = render(environment(ROOT / "site_templates"), decoder.page(report, about, model))
    for text, words, chosen in (
        (html.unescape(rendered), "in fp8 (8 bits, as published), at", "fp8"),
        (page, "in bf16 (fp16 if ", "bf16"),
    ):
        assert words in text
        assert re.findall("<option selected>(.*?)<", text) == [chosen]


def test_the_list_and_the_jobs_agree(page: str, report: Report, workload: Workload) -> None:
    """The list has each machine with its precision; the ranked machines have the least costs."""
    listed = page.partition("## Machines")[2].partition("</tbody>")[0]
    answer, contests = report.tokens[workload.id], report.contests[workload]
    assert listed.count("<tr") == 1 + len(answer.machines)
    # GPUs before Ampere compute in fp16.
    assert len(re.findall(", (?:bf16|fp16);", listed)) == len(answer.machines)
    assert ", fp16;" in listed
    least = min(offer.full.mean for offer in answer.offers if not offer.price.reservation)
    assert contests["tokens"].cheapest.cost.mean == least
    choice = report.tuned[workload.id]["lora"].choice
    assert contests["lora"].cheapest.cost == choice.cost
    assert contests["lora"].cheapest.time == choice.key.way.time


def test_more_machines_are_the_high_end(report: Report) -> None:
    """If the usual cost is the least one, the high end names the machines that it pays for."""
    bests = {name: report.tokens[name].cheapest_machine for name in SHOWN}
    name, best = next(
        (name, best)
        for name, best in bests.items()
        if best and best.per_million.low == best.per_million.mean < best.per_million.high
    )
    page = _page_of(report, Workload.of_model(report.catalogue.models[name]))
    mean, high = best.per_million.mean, best.per_million.high
    count = round(best.machines * high / mean)
    assert count > best.machines
    words = render_cost(replace(best.per_million, mean=high))
    assert f", or {words} if it takes {count} machines" in " ".join(page.split())


def test_a_break_even_within_the_range_is_no_saving(
    report: Report, workload: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the busiest machine's range contains the API's cost, page and chart say so."""
    answer, (api, *_) = report.tokens[workload.id], report.tokens[workload.id].apis
    firm = [offer.full.mean for offer in answer.machines if not offer.price.reservation]
    factor = min(firm) / MOST_BUSY * Decimal("1.1") / api.per_million
    names = "input_per_million", "output_per_million"
    amounts = {name: getattr(api.api, name) * factor for name in names}
    apis = api_offers([api.api.model_copy(update=amounts)], answer.requests)
    answer = replace(answer, apis=tuple(apis))
    turn = answer.turn
    assert turn is not None
    assert turn.busiest.low < turn.api < turn.busiest.high
    figure = load_figure(answer, "load")
    assert figure is not None
    assert figure.title.endswith(f"{turn.offer.deployment.machine.name} costs about as much")
    monkeypatch.setitem(report.__dict__, "tokens", {**report.tokens, workload.id: answer})
    model = report.catalogue.models[workload.id]
    page = decoder.page(report, about_model(report, workload), model)
    text = " ".join(html.unescape(render(environment(ROOT / "site_templates"), page)).split())
    assert "Self-hosting costs about as much as the API if each machine" in text


def test_two_apis_of_a_provider_are_two_lines(report: Report, workload: Workload) -> None:
    """The chart names them by the provider's names of the model."""
    answer = report.tokens[workload.id]
    cheap = answer.apis[0].api
    doubled = {"input_per_million": 2 * cheap.input_per_million}
    dear = cheap.model_copy(update={"id": "dear", "name": "dear", **doubled})
    apis = tuple(api_offers([cheap, dear], answer.requests))
    figure = load_figure(replace(answer, apis=apis), "load")
    assert figure is not None
    points = [(row.way, row.requests_per_second) for row in figure.data.rows]
    assert len(points) == len(set(points))
    assert f"{cheap.provider}, dear" in figure.data.values_of("way")


def test_fewer_than_two_ways_are_no_chart(report: Report, workload: Workload) -> None:
    """There is no chart for a single API or for none."""
    answer = replace(report.tokens[workload.id], offers=())
    assert load_figure(replace(answer, apis=answer.apis[:1]), "load") is None
    assert load_figure(replace(answer, apis=()), "load") is None


def test_each_method_has_its_machine(page: str) -> None:
    """LoRA, QLoRA and training of all weights each have a row, with the memory of each part."""
    tuning = page.partition("## Fine-tuning")[2].partition("## ")[0]
    rows = re.findall("<tr><td>(LoRA|QLoRA|all weights)", tuning)
    assert rows == ["LoRA", "QLoRA", "all weights"]
    assert tuning.count("<li>") >= 4


def test_a_fine_tuning_is_work_of_the_calculator(
    report: Report, data: dict[str, Any], page: str
) -> None:
    """The calculator has a time for each machine, and its bill equals the cost on the page."""
    assert "calculator.html?model=lora/llama-3.1-8b&examples=10000" in page
    job, answer = data["lora/llama-3.1-8b"], report.tuned["llama-3.1-8b"]["lora"]
    hardware, price = answer.choice.key.way.hardware, answer.choice.key.price
    timing = next(each for each in job["train"] if each["machine"] == hardware.id)
    assert (job["examples"], job["tokens"], job["epochs"]) == TUNING
    machines = {offer.key.way.hardware.id for offer in answer.offers}
    assert {each["machine"] for each in job["train"]} == machines
    seconds = Decimal(repr(timing["seconds"][1])) * job["epochs"]
    bill = run(data["plans"]["plans"][price.id]["bill"], {"seconds": seconds})
    assert float(bill.total) == pytest.approx(float(answer.choice.cost.mean), rel=1e-6)
    assert (job["longest"], data["lora/gpt2-decoder"]["longest"]) == (2048, 1024)
    turing = next(each for each in job["train"] if each["machine"] == "lambda-1x-rtx6000")
    assert turing["precision"] == "fp16"


@pytest.mark.parametrize("length", [1024, 2048])
def test_longer_texts_take_the_time_of_the_command(
    report: Report, data: dict[str, Any], length: int
) -> None:
    """Of all machines that fit the longest texts; half of the times are within 2 %."""
    job, answer = data["lora/llama-3.1-70b"], report.tuned["llama-3.1-70b"]["lora"]
    longer = report.tuning_market.answer(replace(answer.demand, length=length))
    exact = {offer.key.way.hardware.id: offer.key.way.time.mean for offer in longer.offers}
    factors = {each["machine"]: each["slower"] for each in job["train"] if "slower" in each}
    assert 10 < len(factors) < len(job["train"])
    assert factors.keys() <= exact.keys()
    between = (length - 512) / (job["longest"] - 512)
    errors = [
        abs(
            each["seconds"][1]
            * 3
            * (1 + (factors[each["machine"]] - 1) * between)
            / float(exact[each["machine"]])
            - 1
        )
        for each in job["train"]
        if each["machine"] in factors
    ]
    assert median(errors) < 0.02
    assert max(errors) < 0.2
