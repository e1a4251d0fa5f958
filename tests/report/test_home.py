"""The home page: answers for a known model, and a script with all others."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest

from epochcost.report import ranking
from epochcost.report.pages import home
from epochcost.report.site import Site, build
from report_project import REPOSITORY, inputs_of, make_result, write_project


def test_the_first_page_answers_a_known_model(site: Site) -> None:
    """The home page has a card for the cheapest machine of a short job, and one chart."""
    page = html.unescape(site.pages["index.md"])
    cards = re.findall(r'<h2 data-ec="title">([^<]+)', page)
    assert cards == ["Cheapest"]
    assert "assumed" not in page.split("ec-cards")[1].split("<figure")[0]
    assert page.count("<figure") == 1
    assert '<option value="net"' in page
    assert 'newest prices <span class="ec-date">2026-07-01</span>' in page


def test_a_long_job_has_three_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal answers share a card."""
    monkeypatch.setattr(ranking, "SHORT_SECONDS", 0)
    folder = write_project(tmp_path, [make_result(), make_result(mode="inference")])
    site = build(inputs_of(folder), REPOSITORY / "site_templates")
    entries = json.loads(str(site.files[home.URI]).partition("=")[2].removesuffix(";\n"))
    titles = ", ".join(card["title"] for card in entries["net/train"]["cards"])
    assert titles.startswith("Cheapest")
    assert "best trade-off" in titles.lower()
    assert titles.lower().endswith("fastest")


def test_the_first_page_knows_every_model_and_job(site: Site) -> None:
    """The home page's script has the answers of every model and job, as on the model's page."""
    script = site.files[home.URI]
    assert isinstance(script, str)
    entries = json.loads(script.partition("=")[2].removesuffix(";\n"))
    assert {"net/train", "net/serve"} <= set(entries)
    job, left_out = entries["net/train"]["about"].split(". ")
    page = html.unescape(site.pages["models/net.md"])
    assert f"<p>{job}: <strong>" in page
    assert f"<li>{left_out}" in page
    for entry in entries.values():
        assert f"{entry['page'].removesuffix('html')}md" in site.pages
        assert not entry["figure"] or entry["figure"] in site.figures
        answers = [(card["machine"], card["plan"]) for card in entry["cards"]]
        assert len(answers) == len(set(answers))
        assert entry["cards"][0]["title"].startswith("Cheapest")
        pages = {f"{card['page'].removesuffix('html')}md" for card in entry["cards"]}
        assert pages <= set(site.pages)


def test_an_embedding_model_begins_with_embedding(tmp_path: Path) -> None:
    """An embedding model's page begins with machines for embedding, and so does home."""
    folder = write_project(tmp_path, [make_result(), make_result(mode="inference")])
    spec = folder / "specs/models/net.toml"
    text = re.sub(
        r"(?m)^( *)task = .*$", r'\1task = "embedding"\n\1tokens_per_example = 8', spec.read_text()
    )
    spec.write_text(text)
    site = build(inputs_of(folder), REPOSITORY / "site_templates")
    page = site.pages["models/net.md"]
    assert 0 < page.index("## Machines for embedding") < page.index("## Machines for training")
    script = str(site.files[home.URI])
    assert script.count('"main":true') == 1
