"""Texts that no committed file may contain, each with its reason."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Written in parts, so that this file does not match.
RULES = {
    # The user chooses the index: a mirror, a cache, or none.
    "a host of a package index": re.compile("(?:pypi|npmjs)" + r"\.org|python" + r"hosted\.org"),
    # Paths of one machine are useless to others.
    "a folder of one machine": re.compile(
        r"(?<![\w.~/-])/(?:root|home/[a-z]+|Users/[a-z]+)/" + r"\w"
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_no_committed_file_has_it(rule: str) -> None:
    """Code, specs, docs, templates and workflows."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    texts = [path for path in paths if path.is_file() and path.suffix not in {".onnx", ".png"}]
    assert len(texts) > 500
    assert [path for path in texts if RULES[rule].search(path.read_text("utf-8", "replace"))] == []
