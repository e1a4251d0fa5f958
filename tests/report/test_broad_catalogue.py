"""Pages of a catalogue in which most machines and models have no time."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from epochcost.analysis.inputs import Inputs
from epochcost.report.site import Site, build
from report_project import REPOSITORY, inputs_of, write_project

MACHINE = """
id = "idle-{number}"
name = "An idle machine, {number}"
provider = "Others"
vcpus = 4
source = "made up for a test"
"""
PRICE = """
id = "idle-{number}-on-demand-{year}"
hardware = "idle-{number}"
plan = "on-demand"
provider = "{provider}"
amount = {number}
source = "made up for a test"
as_of = {year}-07-01
"""


@pytest.fixture(scope="module", name="broad")
def broad_fixture(tmp_path_factory: pytest.TempPathFactory) -> Inputs:
    """The usual project and 20 priced machines without times, some with two prices."""
    project = write_project(tmp_path_factory.mktemp("broad"))
    for number in range(1, 21):
        write(project, f"hardware/idle-{number}", MACHINE.format(number=number))
        for year in (2025, 2026) if number == 1 else (2026,):
            provider = "Others" if number < 20 else "others!"
            text = PRICE.format(number=number, year=year, provider=provider)
            write(project, f"prices/idle-{number}-on-demand-{year}", text)
    return inputs_of(project)


def write(project: Path, name: str, text: str) -> None:
    """Write a spec of the project."""
    (project / "specs" / f"{name}.toml").write_text(text, encoding="utf-8")


@pytest.fixture(scope="module", name="site")
def site_fixture(broad: Inputs) -> Site:
    """The project's site."""
    return build(broad, REPOSITORY / "site_templates")


def test_home_offers_no_model_without_a_time(site: Site) -> None:
    """Models without times are only in the list of models; their pages name the command."""
    page = html.unescape(site.pages["index.md"])
    assert "idle" not in page
    assert "silent" not in page
    assert "site:models/silent.md" in site.pages["models/index.md"]
    assert "epochcost run --model silent" in html.unescape(site.pages["models/silent.md"])


def test_machines_with_results_lead_the_list(site: Site) -> None:
    """Those without a time are last, and their pages do not explain how times are known."""
    names = re.findall(
        r'<tr[^>]*><td><a href="site:machines/([^"]*).md"', site.pages["machines/index.md"]
    )
    measured, _, rest = ",".join(names).partition("idle")
    assert measured
    assert rest.count("idle") == 19
    assert "How we know: " in site.pages["machines/local.md"]
    assert "How we know: " not in site.pages["machines/idle-2.md"]
