"""The README's tutorial runs, its loss falls, and the README's links lead to files."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
README = (Path(__file__).parents[1] / "README.md").read_text("utf-8")


def test_the_tutorial_trains_to_the_stated_accuracy() -> None:
    """The tutorial's code, run from the repository's root, reaches the README's stated accuracy."""
    pytest.importorskip("sklearn")
    [code] = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    stated = re.search(r"at least (\d+) %", README)
    assert stated is not None
    process = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    losses = [float(text) for text in re.findall(r"loss ([\d.]+)", process.stdout)]
    assert losses[-1] < losses[0] / 10
    assert 100 * float(process.stdout.split()[-1]) >= int(stated[1])


def test_the_linked_files_exist() -> None:
    """Every relative link of the README leads to a file in the library's folder."""
    links = re.findall(r"\]\(([^)#:]+)\)", README)
    assert links
    assert all((Path(__file__).parents[1] / link).is_file() for link in links)
