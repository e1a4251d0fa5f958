"""Write the tables of docs/data/benchmarks/*.json into the pages that name them.

    python benchmarks/tables.py

The table of NAME.json stands between `<!-- benchmark NAME: begin -->` and `<!-- benchmark NAME: end
-->`. Cells are text, as the benchmark printed them; this script measures nothing.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
DATA = Path("docs/data/benchmarks")
MARKED = re.compile(
    r"(?P<begin><!-- benchmark (?P<name>[a-z-]+): begin -->\n).*?"
    r"(?P<end><!-- benchmark (?P=name): end -->)",
    re.S,
)
_NUMBER = re.compile(r"\**[-±]?[\d,.]+( ?%| [A-Za-zµ/]+)?\**$")


@dataclass(frozen=True)
class Benchmark:
    """Printed results of one command on one machine and day, as text cells."""

    title: str
    command: str
    date: str
    machine: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def read_benchmark(path: Path) -> Benchmark:
    """Read a file; raises TypeError if a key is missing, ValueError if a row is too short."""
    content = json.loads(path.read_text("utf-8"))
    header, rows = tuple(content.pop("header")), tuple(map(tuple, content.pop("rows")))
    if any(len(row) != len(header) for row in rows):
        raise ValueError(f"{path}: expected {len(header)} cells in every row")
    return Benchmark(**content, header=header, rows=rows)


def render_table(benchmark: Benchmark) -> str:
    """Render title, origin and rows as Markdown; columns of numbers are right-aligned."""
    rules = [_rule([row[at] for row in benchmark.rows]) for at in range(len(benchmark.header))]
    lines = (f"| {' | '.join(cells)} |" for cells in (benchmark.header, rules, *benchmark.rows))
    origin = f"{benchmark.date}, {benchmark.machine}: `{benchmark.command}`"
    return "\n".join([f"**{benchmark.title}.** {origin}", "", *lines])


def _rule(cells: list[str]) -> str:
    numbers = all(_NUMBER.match(cell) for cell in cells if cell)
    return "--:" if numbers else "---"


def render_page(text: str, data: Path) -> str:
    """Replace the table between each pair of marks by the table of the named file."""

    def table(match: re.Match[str]) -> str:
        benchmark = read_benchmark(data / f"{match['name']}.json")
        return f"{match['begin']}\n{render_table(benchmark)}\n\n{match['end']}"

    return MARKED.sub(table, text)


def pages(root: Path) -> dict[Path, str]:
    """Pages under docs/ that have benchmark tables, each with the text that it should have."""
    texts = {path: path.read_text("utf-8") for path in sorted((root / "docs").rglob("*.md"))}
    return {
        path: render_page(text, root / DATA) for path, text in texts.items() if MARKED.search(text)
    }


if __name__ == "__main__":
    for page, text in pages(ROOT).items():
        page.write_text(text, "utf-8")
