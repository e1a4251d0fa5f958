"""`epochcost diff`: no output, a table, a comment within the limit, and JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from epochcost.cli.app import app
from epochcost.cli.request_comment import Comment, markdown, read_comment
from revisions import edit, write_repository


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one commit, as the working folder."""
    folder = write_repository(tmp_path / "project")
    monkeypatch.chdir(folder)
    return folder


def run(*arguments: str) -> str:
    """The output of a successful diff."""
    result = CliRunner().invoke(app, ["diff", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.usefixtures("project")
def test_json_of_no_change() -> None:
    """The document has empty lists."""
    document = json.loads(run("HEAD", "--format", "json"))
    assert (document["costs"], document["winners"]) == ([], [])
    assert not any(document["results"].values())


def test_a_table(project: Path) -> None:
    """One line for the changed training, which implies the epoch's change."""
    edit(project, "prices/local-2025", "0.90", "0.45")
    summary, _, header, row = run("HEAD").splitlines()
    assert summary.endswith(" → working tree: 1 cost changes (1 down)")
    assert header.split() == ["job", "machine", "plan", "before", "after", "change", "why"]
    assert re.split(r"\s{2,}", row.strip()) == [
        "net, full training, batch 32",
        "local (host f00d), cpu",
        "local-2025",
        "$0.0050",
        "$0.0025",
        "-$0.0025 (-50.0%)",
        "price: amount 0.9 → 0.45",
    ]


def test_json_has_exact_amounts(project: Path) -> None:
    """Amounts are decimal strings of the published table."""
    edit(project, "prices/local-2025", "0.90", "0.45")
    costs = json.loads(run("HEAD", "--format", "json"))["costs"]
    assert [cost["after"]["job"]["goal"] for cost in costs] == ["epoch", "full"]
    before, after = (costs[1][side]["values"]["full_cost"] for side in ("before", "after"))
    assert (before, after) == ("0.005", "0.0025")
    assert costs[1]["causes"][0]["kind"] == "price"


def test_the_data_of_the_comment(project: Path) -> None:
    """The stored data renders to the same comment."""
    assert read_comment(run("HEAD", "--format", "comment").encode()) == Comment()
    edit(project, "prices/local-2025", "0.90", "0.45")
    comment = read_comment(run("HEAD", "--format", "comment").encode())
    assert markdown(comment) == run("HEAD", "--format", "markdown")


def test_a_name_that_a_terminal_would_obey(project: Path) -> None:
    """Control characters in file names are printed as numbers."""
    path = project / "docs/data/results/lo\x1b[32mcal/x.json"
    path.parent.mkdir()
    path.write_text("{}", "utf-8")
    for form in ("text", "markdown", "comment", "json"):
        result = CliRunner().invoke(app, ["diff", "HEAD", "--format", form])
        assert result.output
        assert "\x1b" not in result.output
