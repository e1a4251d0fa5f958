"""Commands, results and pictures of the explanations, held to the program and the real specs."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from walkthrough import Command, do, steps

ROOT = Path(__file__).parents[2]
EXPLANATION = ROOT / "docs/explanation"
_HEADING = re.compile(r"^## (.+)$", re.M)
_LABEL = re.compile(r"<text[^>]*>([^<]+)</text>")


@pytest.fixture(name="project", scope="module")
def project_fixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the specs of this repository and no results."""
    folder = tmp_path_factory.mktemp("explained")
    shutil.copytree(ROOT / "specs", folder / "specs")
    return folder


def _commands(page: Path) -> list[Command]:
    headings = _HEADING.findall(page.read_text("utf-8"))
    found = [step for heading in headings for step in steps(page, heading)]
    return [step for step in found if isinstance(step, Command)]


def test_bills_are_printed_as_the_page_shows(project: Path) -> None:
    """Every bill of the page, by its command."""
    commands = _commands(EXPLANATION / "bills.md")
    assert len(commands) >= 2
    for command in commands:
        do(command, project)


def test_the_picture_of_a_bill_has_the_amounts_of_the_command(project: Path) -> None:
    """Each quantity, rate and amount of the drawn lines is one that `quote` prints."""
    page = EXPLANATION / "bills.md"
    first = _commands(page)[0]
    printed = " ".join(do(first, project).split())
    drawn = _LABEL.findall(page.read_text("utf-8").partition("</svg>")[0])
    figures = re.findall(r"\d+\.\d+", " ".join(drawn))
    assert len(figures) == 7
    for figure in figures:
        assert figure in printed
