"""`CITATION.cff` has its format's keys and agrees with the package."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
# What version 1.2.0 of the format demands, and what it allows beside (its schema on GitHub).
_DEMANDED = {"cff-version", "message", "title", "authors"}
_ALLOWED = _DEMANDED | {"type", "abstract", "version", "license", "keywords"}


def test_the_citation_is_of_its_format_and_of_this_package() -> None:
    """It has known keys only, one entity as author, and the package's version and licence."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert set(citation) >= _DEMANDED
    assert set(citation) <= _ALLOWED
    assert citation["cff-version"] == "1.2.0"
    assert citation["type"] == "software"
    assert citation["authors"] == [{"name": project["authors"][0]["name"]}]
    assert citation["title"] == project["name"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", citation["version"])
    assert citation["version"] == project["version"]
    assert citation["license"] == project["license"]
    assert len(set(citation["keywords"])) == len(citation["keywords"]) > 0
