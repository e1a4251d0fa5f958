"""`epochcost diff` as a table, as JSON and as a comment."""

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
    """A Git repository with one commit, as the working folder."""
    folder = write_repository(tmp_path / "project")
    monkeypatch.chdir(folder)
    return folder


def run(*arguments: str) -> str:
    """The output of a successful `epochcost diff`."""
    result = CliRunner().invoke(app, ["diff", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.usefixtures("project")
def test_json_of_no_change() -> None:
    """Without a change the JSON lists are empty."""
    document = json.loads(run("HEAD", "--format", "json"))
    assert (document["costs"], document["winners"]) == ([], [])
    assert not any(document["results"].values())


def test_a_table(project: Path) -> None:
    """The full training has a line; the epoch, whose change follows from it, has none."""
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
        "-$0.0025 (-50.0 %)",
        "price: amount 0.9 → 0.45",
    ]


def test_json_has_exact_amounts(project: Path) -> None:
    """Amounts before and after are exact decimal strings."""
    edit(project, "prices/local-2025", "0.90", "0.45")
    costs = json.loads(run("HEAD", "--format", "json"))["costs"]
    assert [cost["after"]["job"]["goal"] for cost in costs] == ["epoch", "full"]
    before, after = (costs[1][side]["values"]["full_cost"] for side in ("before", "after"))
    assert (before, after) == ("0.005", "0.0025")
    assert costs[1]["causes"][0]["kind"] == "price"


def test_the_data_of_the_comment(project: Path) -> None:
    """The comment that is read back from its data has the same Markdown."""
    assert read_comment(run("HEAD", "--format", "comment").encode()) == Comment()
    edit(project, "prices/local-2025", "0.90", "0.45")
    comment = read_comment(run("HEAD", "--format", "comment").encode())
    assert markdown(comment) == run("HEAD", "--format", "markdown")


def test_a_name_that_a_terminal_would_obey(project: Path) -> None:
    """A control character in a file name is not printed as such."""
    path = project / "docs/data/results/lo\x1b[32mcal/x.json"
    path.parent.mkdir()
    path.write_text("{}", "utf-8")
    for form in ("text", "markdown", "comment", "json"):
        result = CliRunner().invoke(app, ["diff", "HEAD", "--format", form])
        assert result.output
        assert "\x1b" not in result.output
