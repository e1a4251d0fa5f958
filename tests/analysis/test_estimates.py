"""Models priced from FLOPs: machines, ranges, and marks on every page."""

from __future__ import annotations

import html
import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from epochcost.analysis.estimates import estimated_rows
from epochcost.report.pages.page import Report
from epochcost.report.site import Site, build
from report_project import REPOSITORY, inputs_of, write_project

GPU = "[[accelerators]]\nname = 'GPU'\ncount = 10\nmemory_gib = {memory}\n"
PEAK = "peak_fp16_tflops = 100\n"
HEAD = "provider = 'Cloud'\nvcpus = 8\nsource = 'a test'\n"
PRICE = "plan = 'on-demand'\nprovider = 'Cloud'\namount = {amount}\nbilling = 'prorated'\n"
DATED = "source = 'a test'\nas_of = 2026-07-01\n"
SPECS = {
    # 6e18 operations.
    "models/big": "name = 'Big'\ntask = 'language'\nexample = 'a token'\nsource = 'a test'\n"
    "declared = { parameters = 1_000_000_000, training_tokens = 1_000_000_000 }\n",
    "hardware/node": f"name = 'Node'\n{HEAD}{GPU.format(memory=80)}{PEAK}",
    "hardware/other": f"name = 'Other'\n{HEAD}{GPU.format(memory=40)}{PEAK}",
    "hardware/small": f"name = 'Small'\n{HEAD}{GPU.format(memory=16)}{PEAK}",
    "hardware/mute": f"name = 'Mute'\n{HEAD}{GPU.format(memory=80)}",
    **{
        f"prices/{name}-hourly": f"hardware = '{name}'\n{PRICE.format(amount=amount)}{DATED}"
        for name, amount in {"node": "3.6", "other": "7.2", "small": "0.1", "mute": "0.1"}.items()
    },
}


@pytest.fixture(scope="module", name="report")
def report_fixture(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """A project with a declared model, and two machines that train such models."""
    folder = write_project(tmp_path_factory.mktemp("large"))
    for name, text in SPECS.items():
        path = Path(folder / f"specs/{name}.toml")
        path.write_text(f'id = "{path.stem}"\n{text}')
    return Report(inputs_of(folder))


@pytest.fixture(scope="module", name="site")
def site_fixture(report: Report) -> Site:
    """The project's site."""
    return build(report.inputs, REPOSITORY / "site_templates")


def test_a_declared_model_is_priced_as_a_range(report: Report) -> None:
    """6e18 operations at a fifth to a half of 1e15 a second, at a dollar for 1000 seconds."""
    row = report.estimated["big"][0]
    assert row.hardware.id == "node"
    assert (row.time.low, row.time.high) == (12_000, 30_000)
    assert (row.cost.low, row.cost.high) == (Decimal(12), Decimal(30))
    assert row.mark == "estimated"


def test_machines_that_train_large_models_only(report: Report) -> None:
    """Cheapest first; machines with little memory or an unknown peak are omitted."""
    assert [row.hardware.id for row in report.estimated["big"]] == ["node", "other"]


def test_prices_in_another_currency_come_last(report: Report) -> None:
    """A low price in euros does not lead estimates in dollars."""
    catalogue = report.catalogue
    euros = catalogue.price("node-hourly").model_copy(update={"currency": "EUR"})
    prices = {**catalogue.prices, "node-hourly": euros}
    more = euros.model_copy(update={"id": "more", "hardware": "other", "currency": "USD"})
    changed = replace(
        catalogue, prices={**prices, "more": more.model_copy(update={"provider": "x"})}
    )
    rows = estimated_rows(replace(report.inputs, catalogue=changed), ())["big"]
    assert [row.cost.currency for row in rows] == ["USD", "USD", "EUR"]


def test_lists_tell_estimates_apart(site: Site) -> None:
    """The first page and the list of models mark estimates."""
    script = site.files["data/home.js"]
    assert isinstance(script, str)
    cards = json.loads(script.partition("=")[2].removesuffix(";\n"))
    assert cards["big/train"]["cards"][0]["mark"] == "✚\N{NO-BREAK SPACE}estimated"
    row = next(line for line in site.pages["models/index.md"].splitlines() if ">Big</a>" in line)
    assert "✚" in html.unescape(row)
