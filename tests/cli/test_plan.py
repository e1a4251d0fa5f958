"""`epochcost plan`: what a run would do, for people and for machines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from epochcost.cli.app import app
from epochcost.measure.providers import usable_providers
from tiny_project import write_tiny_project


@pytest.fixture(autouse=True)
def in_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test here stands in a tiny project."""
    monkeypatch.chdir(write_tiny_project(tmp_path / "project"))


def plan(*arguments: str) -> str:
    """What `epochcost plan` prints."""
    done = CliRunner().invoke(app, ["plan", *arguments], catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def test_the_trials_are_listed_in_order() -> None:
    """A line for each trial, with its id, cheapest first."""
    lines = plan("--provider", "cpu").splitlines()
    assert lines[0] == "3 trials on local, at most 1.5 s of timing"
    assert [line[:26].rstrip() for line in lines[2:]] == [
        "tiny inference cpu batch 1",
        "tiny training cpu batch 2",
        "tiny training cpu batch 4",
    ]


def test_json_holds_everything_that_defines_a_trial() -> None:
    """A machine reads the same trials, with the digests of their work."""
    document = json.loads(plan("--provider", "cpu", "--format", "json"))
    assert document["hardware"] == "local"
    assert [trial["batch_size"] for trial in document["trials"]] == [1, 2, 4]
    assert all(len(trial["graph_sha256"]) == 64 for trial in document["trials"])
    assert len({trial["id"] for trial in document["trials"]}) == 3


@pytest.mark.skipif("cuda" in usable_providers(), reason="CUDA is usable here")
def test_what_is_left_out_has_its_reason() -> None:
    """Without a GPU the CUDA trials are named, with what is missing."""
    text = plan()
    assert "left out, because provider cuda: demanded a usable GPU" in text
    assert "\n  tiny training cuda\n" in text
    document = json.loads(plan("--format", "json"))
    assert [left["what"] for left in document["left_out"]] == [
        "tiny training cuda",
        "tiny inference cuda",
    ]


def test_planning_twice_gives_the_same_ids() -> None:
    """A plan has no hidden input: neither time nor chance."""
    assert plan("--format", "json") == plan("--format", "json")
