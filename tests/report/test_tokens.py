"""The pages of decoders: figures, separate costs, and the entry in the list of models."""

from __future__ import annotations

import html
import json
import re
from decimal import Decimal
from pathlib import Path

import onnx
import pytest

from analysis.test_tokens import TIMES, phase_result, project
from epochcost.analysis.inputs import read_inputs
from epochcost.plan.work import Requests
from epochcost.report import traffic
from epochcost.report.pages import decoder, home
from epochcost.report.site import Site, build
from epochcost.results.records import Result
from epochcost.results.store import write_sidecar
from epochcost.specs.loader import load_catalogue
from epochcost.specs.requests import Lengths
from epochcost.specs.study import Precision
from kept_ceilings import make_ceilings
from report_project import REPOSITORY, make_result, store_results
from served_results import ASKED, behind_an_engine
from tiny_decoders import tiny_decoder


@pytest.fixture(scope="module", name="site")
def site_fixture(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The site of a decoder timed on one machine with ceilings."""
    root = tmp_path_factory.mktemp("tokens")
    project(root)
    with_room(root)
    # The length of the pages' requests.
    store_results(root, [phase_result("decode", 300, many, many / 10) for many in (1, 4)])
    onnx.save(tiny_decoder(), str(root / "models/tiny.onnx"))
    write_sidecar(root / "docs/data/results", make_ceilings(make_result().environment))
    return built(root)


def with_room(root: Path) -> None:
    """Give the decoder a context for the pages' requests."""
    spec = root / "specs/models/tiny.toml"
    spec.write_text(spec.read_text("utf-8").replace("context = 256", "context = 512"), "utf-8")


def built(root: Path) -> Site:
    """The site of a project."""
    inputs = read_inputs(load_catalogue(root), [root / "docs/data/results"], root / "docs")
    return build(inputs, REPOSITORY / "site_templates")


def test_a_machine_has_its_phases_and_its_parts(site: Site) -> None:
    """Every phase is a row, with memory's share of decoding."""
    page = site.pages["models/tiny.md"]
    phases = page.partition("Measured phases")[2].partition("</table>")[0]
    assert phases.count("<tr>") == 1 + len(TIMES) + 2
    assert phases.count("<small>weights ") == 6


def test_the_list_says_what_a_million_tokens_cost(site: Site) -> None:
    """On the machine and by the API, among the language models."""
    listed = html.unescape(site.pages["models/index.md"]).partition("## Images")[0]
    row = next(line for line in listed.splitlines() if "Tiny" in line)
    cost = re.search(r"<strong>(\$[0-9.]+)</strong><br><small>This machine", row)
    assert cost is not None
    assert "<small>They, " in row
    page = html.unescape(site.pages["models/tiny.md"])
    assert f": {cost[1]} a million tokens" in page
    assert "They: $2.00 a million tokens" in page


def test_the_first_page_knows_a_million_tokens(site: Site) -> None:
    """Its cards are a machine at a load, the API and a busy machine, as on the model's page."""
    script = site.files[home.URI]
    assert isinstance(script, str)
    shown = json.loads(script.partition("=")[2].removesuffix(";\n"))["tiny/tokens"]
    assert shown["own"] == "models/tiny.html#your-traffic"
    assert shown["figure"] == "models-tiny-load"
    hosted, api, busy = shown["cards"]
    page = html.unescape(site.pages["models/tiny.md"])
    assert hosted["title"] == "Self-host at 1 request/s"
    assert f": {hosted['cost']} a million tokens" in page
    for card in (hosted, api):
        month = card["software"].partition(" a month at 1 request/s")[0].rpartition(" ")[2]
        assert f"<strong>{month} a month</strong>" in page
    assert (api["cost"], api["machine"]) == ("$2.00", "They")
    assert f"a million tokens cost {busy['cost']}" in page
    assert shown["about"] == "Requests of 200 tokens read and 100 written."


@pytest.mark.parametrize("phase", ["prefill", "decode"])
def test_a_run_that_ended_after_one_phase_is_shown(tmp_path: Path, phase: str) -> None:
    """The page has the phase, and the form has no machine that it cannot compute."""
    project(tmp_path)
    with_room(tmp_path)
    store = tmp_path / "docs/data/results"
    for path in store.rglob("*.json"):
        if phase not in path.read_text("utf-8"):
            path.unlink()
    onnx.save(tiny_decoder(), str(tmp_path / "models/tiny.onnx"))
    site = built(tmp_path)
    assert "Measured phases" in site.pages["models/tiny.md"]
    assert '"decoders":[]' in str(site.files[f"{traffic.FOLDER}/tiny.js"])


def test_the_largest_load_is_stated_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages and the form take it from the constant with which machines are counted."""
    for module in (decoder, home, traffic):
        monkeypatch.setattr(module, "MOST_BUSY", Decimal("0.71"))
    project(tmp_path)
    with_room(tmp_path)
    store_results(tmp_path, [phase_result("decode", 300, many, many / 10) for many in (1, 4)])
    onnx.save(tiny_decoder(), str(tmp_path / "models/tiny.onnx"))
    site = built(tmp_path)
    page = html.unescape(site.pages["models/tiny.md"])
    assert "at most 71 % busy" in page
    assert "80 %" not in page
    scripts = [site.files[address] for address in (home.URI, traffic.SHARED)]
    assert "The API is predicted to cost less than any machine" in str(scripts[0])
    assert '"most_busy":0.71' in str(scripts[1])


def test_an_ended_offer_is_no_answer_of_the_form(tmp_path: Path) -> None:
    """The form computes the costs of an API only as long as the API is offered."""
    project(tmp_path)
    address = f"{traffic.FOLDER}/tiny.js"
    assert '"apis":[{"name":"They, ' in str(built(tmp_path).files[address])
    api = tmp_path / "specs/apis/theirs.toml"
    api.write_text(api.read_text("utf-8") + "valid_until = 2026-11-02\n", "utf-8")
    assert '"apis":[]' in str(built(tmp_path).files[address])


def test_each_rate_stands_beside_the_bounds_it_keeps(tmp_path: Path) -> None:
    """A slower decoder with other requests meets none of its bounds."""
    project(tmp_path)
    onnx.save(tiny_decoder(), str(tmp_path / "models/tiny.onnx"))
    timed = phase_result("decode", 300, 4, 0.4)
    shorter = {"prompt": Lengths(median=24, p90=48, most=64), "answer": Lengths(tokens=(4, 8))}
    slow = ASKED.model_copy(update={"first_token_ms": 10_000, "percentile": 50, **shorter})
    none = ASKED.model_copy(update={"first_token_ms": 1000})
    cases: list[tuple[dict[float, float], Requests, Precision]] = [
        ({2.0: 1.0, 3.0: 1.5, 4.0: 2.0}, ASKED, "fp32"),
        ({1.0: 3.0, 2.0: 4.0}, slow, "int4"),
        ({}, none, "tf32"),
    ]
    results = [
        _in_precision(behind_an_engine(timed, rates, bounds), precision)
        for rates, bounds, precision in cases
    ]
    store_results(tmp_path, [timed, *results])
    page = html.unescape(built(tmp_path).pages["models/tiny.md"])
    lengths = "prompts of about 24 (90 % below 48) tokens and answers of 4 or 8"
    assert page.count(f"int4, {lengths}, 50 % within 10 s and 200 ms") == 2
    assert page.count(f"fp32, {ASKED.lengths_text}, 90 % within 80 ms and 200 ms") == 3
    assert f"no rate meets the bounds: {ASKED.lengths_text}, 90 % within 1 s and 200 ms" in page


def _in_precision(result: Result, precision: Precision) -> Result:
    trial = result.trial.model_copy(update={"precision": precision})
    return result.model_copy(update={"trial": trial, "trial_id": trial.id})
