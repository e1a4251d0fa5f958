"""The page on spot machines: a replay in text and charts, and plans without a rate."""

from __future__ import annotations

from html import unescape
from pathlib import Path

import pytest

from epochcost.analysis.replays import Replayed, play
from epochcost.report.pages import spot
from epochcost.report.pages.page import Page, Report
from epochcost.report.templates import environment, render
from report_project import REPOSITORY, cells, inputs_of, write_project
from report_specs import HOSTILE

# The dear zone is always available, the cheap one except for the minute after 10:02.
TRACE = """time,zone,price,available
2026-01-01T10:00Z,cheap,0.4,1
2026-01-01T10:00Z,dear,0.6,1
2026-01-01T10:02Z,cheap,,0
2026-01-01T10:03Z,cheap,0.4,1
2026-01-01T10:20Z,dear,0.6,1
"""
REPLAY = f"""id = "two"
name = '''{HOSTILE}'''
trace = "two.csv"
model = "net"
hardware = "box"
state_gb = 5
restart_seconds = 0
interval_seconds = 50
source = '''{HOSTILE}'''
"""
PLAN = """id = "box-spot"
hardware = "box"
plan = "spot"
provider = "Cloud"
amount = 0.3
billing = "prorated"
source = "a test"
as_of = 2026-07-01
"""


def _project(folder: Path, replay: str = REPLAY) -> Report:
    project = write_project(folder)
    (project / "specs/replays").mkdir()
    (project / "specs/replays/two.toml").write_text(replay)
    (project / "specs/replays/two.csv").write_text(TRACE)
    (project / "specs/prices/box-spot.toml").write_text(PLAN)
    return Report(inputs_of(project))


@pytest.fixture(scope="module", name="report")
def report_fixture(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """A project with 200 s of training at $0.80 on demand, and a trace of two zones."""
    return _project(tmp_path_factory.mktemp("spot"))


@pytest.fixture(scope="module", name="page")
def page_fixture(report: Report) -> Page:
    """The page on spot machines."""
    (page,) = spot.pages(report)
    return page


def _played(report: Report) -> Replayed:
    return play(report.catalogue, report.observations, report.catalogue.replays["two"])


def test_the_page_says_what_spot_saves(report: Report, page: Page) -> None:
    """The page states the share of the on-demand cost that the best policy saves."""
    text = unescape(render(environment(REPOSITORY / "site_templates"), page))
    played = _played(report)
    on_demand = played.job.on_demand_cost
    assert on_demand == pytest.approx(200 * 0.8 / 3600)
    best = min(result.cost.mean for result in played.results)
    assert f"spot saves {100 * (1 - best / on_demand):.0f} %" in text
    rows = [row for line in text.splitlines() if (row := cells(line))]
    assert ["box.md" in row[0] for row in rows[:2]] == [True, False]  # today's prices come first
    assert [row[0] for row in rows][1:4] == [
        "staying in cheap",
        "moving when interrupted",
        "moving when it pays, too",
    ]
    assert "{{ 7*7 }}" not in text.replace(HOSTILE, "")
    assert "<script>window" not in render(environment(REPOSITORY / "site_templates"), page)


def test_without_a_replay_the_page_says_how_to_have_one(tmp_path: Path) -> None:
    """Without a declared trace, the page names the folder for one."""
    (page,) = spot.pages(Report(inputs_of(write_project(tmp_path))))
    text = unescape(render(environment(REPOSITORY / "site_templates"), page))
    assert "No trace of spot machines is declared." in text
    assert "from a file in `specs/replays/`" in text
    assert "Every spot plan here has a rate." in text


def test_plans_are_sorted_by_their_cost(tmp_path: Path) -> None:
    """A price of several components has no amount of its own, and is listed by their sum."""
    project = write_project(tmp_path)
    parts = "[[components]]\nlabel = 'machine'\namount = 2\n"
    (project / "specs/prices/box-spot.toml").write_text(PLAN)
    other = PLAN.replace('"box', '"crate').replace("amount = 0.3\n", "") + parts
    (project / "specs/prices/crate-spot.toml").write_text(other)
    (page,) = spot.pages(Report(inputs_of(project)))
    assert [price.id for price, *_ in page.context["unknown"]] == ["box-spot", "crate-spot"]
