"""Commands, results and pictures of the explanations, held to the program and the real specs."""

from __future__ import annotations

import math
import re
import shutil
from pathlib import Path
from statistics import NormalDist

import pytest

from epochcost.predict.joint import NINE_OF_TEN
from walkthrough import Command, do, steps

ROOT = Path(__file__).parents[2]
EXPLANATION = ROOT / "docs/explanation"
_LABEL = re.compile(r"<text[^>]*>([^<]+)</text>")


@pytest.fixture(name="project", scope="module")
def project_fixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the specs of this repository and no results."""
    folder = tmp_path_factory.mktemp("explained")
    shutil.copytree(ROOT / "specs", folder / "specs")
    return folder


def _commands(page: Path) -> list[Command]:
    return [step for step in steps(page) if isinstance(step, Command)]


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


def test_the_picture_of_an_interval_follows_from_its_numbers() -> None:
    """The odds of the two drawn machines are those of the drawn ratio and its range."""
    page = (EXPLANATION / "predictions.md").read_text("utf-8")
    drawn = " ".join(_LABEL.findall(page.partition("</svg>")[0]))
    a, b = (float(each) for each in re.findall(r"\$([\d.]+), likely", drawn))
    ratio, low, high, cheaper = (
        float(each)
        for each in re.findall(r"([\d.]+) times, likely ([\d.]+) to ([\d.]+).*in (\d+) of", drawn)[
            0
        ]
    )
    assert ratio == pytest.approx(b / a)
    spread = math.log(high / low) / 2 / NINE_OF_TEN
    odds = NormalDist(math.log(ratio), spread).cdf(0)
    assert cheaper == round(100 * (1 - odds))
