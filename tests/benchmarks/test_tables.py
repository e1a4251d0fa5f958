"""Tables of benchmarks on pages equal those of their data, which names an existing command."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import pytest
from tables import DATA, pages, read_benchmark, render_page

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / DATA).glob("*.json"))


def test_pages_show_their_data() -> None:
    """Rendering the pages again changes nothing, and each data file is on a page."""
    texts = pages(ROOT)
    for page, text in texts.items():
        assert page.read_text("utf-8") == text, f"{page}: run python benchmarks/tables.py"
    assert FILES
    for file in FILES:
        assert any(f"<!-- benchmark {file.stem}: begin -->" in text for text in texts.values())


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_data_names_command_and_day(file: Path) -> None:
    """The script of each data file's command exists, and its date ends with a day."""
    benchmark = read_benchmark(file)
    program, *arguments = benchmark.command.split()
    assert program == "epochcost" or (ROOT / arguments[0]).is_file()
    assert dt.date.fromisoformat(benchmark.date.split(" to ")[-1])
    assert benchmark.machine
    assert benchmark.rows


def test_a_table_takes_the_place_of_the_former_one(tmp_path: Path) -> None:
    """A new table replaces the old one and nothing else. Columns of numbers are right-aligned."""
    content = {"title": "Speed", "command": "c", "date": "2026-11-26", "machine": "m"}
    content |= {"header": ["model", "time"], "rows": [["a, b", "1.5 s"]]}
    (tmp_path / "speed.json").write_text(json.dumps(content), "utf-8")
    page = "before\n<!-- benchmark speed: begin -->\nold\n<!-- benchmark speed: end -->\nafter\n"
    table = "**Speed.** 2026-11-26, m: `c`\n\n| model | time |\n| --- | --: |\n| a, b | 1.5 s |"
    assert render_page(page, tmp_path) == page.replace("old", f"\n{table}\n")
    (tmp_path / "speed.json").write_text(json.dumps(content | {"rows": [["a"]]}), "utf-8")
    with pytest.raises(ValueError, match="expected 2 cells"):
        render_page(page, tmp_path)
