"""Commands, results and pictures of the explanations, held to the program and the real specs."""

from __future__ import annotations

import math
import re
import shutil
from pathlib import Path
from statistics import NormalDist

import pytest

from epochcost.predict.joint import NINE_OF_TEN
from epochcost.report.wording import SHAPES, render_mark
from epochcost.specs.prices import api_table, doubts
from epochcost.specs.terms import SUSTAINED_USE
from epochcost.units import plain
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


def test_factors_of_doubt_and_discount_are_those_of_the_program() -> None:
    """The table of doubted prices and the quarters of sustained use."""
    page = (EXPLANATION / "bills.md").read_text("utf-8")
    spot, committed = doubts.PLAN_SHARES["spot"], doubts.PLAN_SHARES["committed-use"]
    shares = {key: f"{plain(low)} to {plain(high)}" for key, _, low, high in api_table.SHARES}
    rows = (
        ("the last price of the plan",
         f"{doubts.MOST_RISE} up, {doubts.MOST_FALL} down; spot {doubts.MOST_SPOT_CHANGE}",
         plain(api_table.MOST_CHANGE)),
        ("the same accelerator or model elsewhere",
         f"{doubts.MOST_ELSEWHERE}; {doubts.MOST_WITHIN} at the same provider",
         f"{api_table.MOST_FROM_MEDIAN} from the median"),
        ("the provider's other accelerators or models",
         f"{doubts.MOST_OUTSIDE} outside their range",
         f"{api_table.MOST_OUTSIDE} outside their range"),
        ("the machine's on-demand price",
         f"spot {spot[0]} to {spot[1]}; committed {committed[0]} to {committed[1]}", "-"),
        ("the input price", "-",
         f"output {shares['output_per_million']}; cached {shares['cached_input_per_million']}; "
         f"cache write {shares['cache_write_per_million']}"),
    )  # fmt: skip
    for row in rows:
        assert f"| {' | '.join(row)} |" in page
    *first, last = (plain(share * 100) for share in SUSTAINED_USE["gce-n1"])
    assert f"{', '.join(first)} and {last} % of the rate in the four quarters" in page


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


@pytest.mark.parametrize("page", sorted(EXPLANATION.glob("*.md")), ids=lambda page: page.stem)
def test_a_page_is_read_in_a_few_minutes(page: Path) -> None:
    """At most 1,500 words outside of tables, formulas and pictures."""
    text = re.sub(r"(?s)```.*?```|<svg.*?</svg>|<[^>]+>", "", page.read_text("utf-8"))
    prose = [line for line in text.splitlines() if not line.startswith("|")]
    assert len(" ".join(prose).split()) <= 1500


def test_the_marks_are_those_of_the_site() -> None:
    """The first column of the table of marks, in the order of the charts' legend."""
    page = (EXPLANATION / "figures.md").read_text("utf-8")
    section = page.partition("\n## Marks\n")[2].partition("\n## ")[0]
    marks = re.findall(r"^\| (\S .+?) \|", section, re.M)
    assert marks[0] == "● measured"
    assert marks == [f"{shape} {render_mark(mark)}" for mark, shape in SHAPES.items()]
