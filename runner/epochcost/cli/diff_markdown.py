"""A comparison as the text of one comment on a pull request.

Its first line is a mark that no reader sees, by which a workflow finds its own comment again. What
a file says is only ever shown as text: no mark-up of it is followed, and nobody is notified.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from epochcost.report.difference.words import (
    HEADER,
    by_size,
    cells,
    recomputed_words,
    shown_costs,
    summary,
    winner_words,
)

if TYPE_CHECKING:
    from epochcost.report.difference.changes import ChangedCost, Difference
    from epochcost.report.difference.results import ResultFile

ItemT = TypeVar("ItemT")
MARKER = "<!-- epochcost diff -->"
# GitHub refuses a comment of more than 65,536 characters; the rest is left to whoever adds to it.
MOST_BYTES = 60_000
# The rows that a reader sees before unfolding the others.
_ROWS_ABOVE = 20
_MARKUP = "\\`*_[]|~"
# These marks, tags, and what GitHub finds when Markdown is done, so that entities do not hide it:
# links by themselves, people, issues, pictures of words, formulas.
_SPECIAL = re.compile(
    r"[\\`*_\[\]|~<>&@#$]|:(?=//|[\w+-]+:)|(?<=www)(?=\.)|(?<=GH)-", re.IGNORECASE
)
_NO_WIDTH = "&#8203;"


def as_markdown(difference: Difference) -> str:
    """The comment, at most ``MOST_BYTES`` in UTF-8; empty where nothing changes."""
    if difference.is_empty:
        return ""
    costs = by_size(shown_costs(difference))
    title = f"**{escaped(summary(difference))}**"
    between = f"Between {escaped(difference.before)} and {escaped(difference.after)}."
    head = [MARKER, "### What this changes in cost", "", f"{title}  \n{between}", ""]
    text = "\n".join(head) + "\n"
    for section in (
        _table(costs[:_ROWS_ABOVE]),
        _listed("Cheapest now", difference.winners, lambda one: escaped(winner_words(one))),
        _listed(
            "Published figures, recomputed",
            difference.recomputed,
            lambda one: escaped(recomputed_words(one)),
        ),
        *_results(difference),
        _folded("More costs", costs[_ROWS_ABOVE:]),
        _listed("Left out", difference.problems, escaped),
    ):
        text += section(MOST_BYTES - _size(text))
    return text


# What writes a section into so many bytes, and says how much it left out.
_Section = Callable[[int], str]


def _table(costs: Sequence[ChangedCost]) -> _Section:
    head = f"| {' | '.join(HEADER)} |\n| --- | --- | --- | ---: | ---: | ---: | --- |\n"
    return lambda room: _fitting(head, [_row(one) for one in costs], "\n", room)


def _folded(title: str, costs: Sequence[ChangedCost]) -> _Section:
    opened = f"<details><summary>{title}: {len(costs):,}</summary>\n\n"
    end = "\n</details>\n"

    def write(room: int) -> str:
        inside = _table(costs)(room - _size(opened + end))
        return f"{opened}{inside}{end}" if inside else ""

    return write


def _results(difference: Difference) -> Iterator[_Section]:
    for kind, files in difference.results.by_kind().items():
        yield _listed(f"Results {kind}: {len(files):,}", files, _file)


def _file(file: ResultFile) -> str:
    doubts = f" ({escaped('; '.join(file.doubts))})" if file.doubts else ""
    return f"{escaped(file.title)} on {escaped(file.hardware)}{doubts}"


def _listed(title: str, items: Sequence[ItemT], words: Callable[[ItemT], str]) -> _Section:
    head = f"<details open><summary>{title}</summary>\n\n"
    end = "\n</details>\n\n"

    def write(room: int) -> str:
        inside = _fitting("", [f"- {words(one)}\n" for one in items], "", room - _size(head + end))
        return f"{head}{inside}{end}" if inside else ""

    return write


def _row(change: ChangedCost) -> str:
    return f"| {' | '.join(escaped(cell) for cell in cells(change))} |\n"


def _fitting(head: str, rows: Sequence[str], end: str, room: int) -> str:
    """As many rows as fit, and how many more there are; nothing where not one fits."""
    whole = head + "".join(rows) + end
    if not rows or _size(whole) <= room:
        return whole if rows else ""
    kept: list[str] = []
    more = "\nand {} more: `epochcost diff` lists them all\n"
    size = _size(head + end + more) + 10
    for row in rows:
        size += _size(row)
        if size > room:
            break
        kept.append(row)
    if not kept:
        return ""
    return head + "".join(kept) + more.format(f"{len(rows) - len(kept):,}") + end


def _size(text: str) -> int:
    return len(text.encode())


def escaped(text: str) -> str:
    """Text that Markdown and GitHub show as it is: no mark-up, no link, no mention."""
    return _SPECIAL.sub(_as_text, " ".join(text.split()))


def _as_text(found: re.Match[str]) -> str:
    """Behind a backslash GitHub would still see a tag, a link, a mention or a formula.

    What has no width keeps apart what it looks for; a dollar in a tag is its own way.
    """
    character = found[0]
    if character and character in _MARKUP:
        return f"\\{character}"
    if character in ("<", ">", "&"):
        return f"&#{ord(character)};"
    return "<span>$</span>" if character == "$" else f"{character}{_NO_WIDTH}"
