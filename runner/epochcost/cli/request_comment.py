"""Make the comment on a pull request: write and read the comment's data, and make its Markdown.

A workflow that may write comments runs this file on data that it does not trust. So this file
imports the standard library only, checks the data strictly, and shows each text as code.
"""

from __future__ import annotations

import functools
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

# An invisible first line, by which a workflow finds its earlier comment.
MARKER = "<!-- epochcost diff -->"
# Limits of the writer. A character has at most four bytes: the file's limit fits all parts full of
# the longest texts.
MOST_BYTES = 8_000_000
MOST_ROWS = 200
MOST_CHARACTERS = 500
MOST_COUNTED = 1_000_000
# The commands whose faults a comment shows.
BUDGETS = "check --budgets"
CHECKS = ("check", "check --results", BUDGETS)
_FAULTS = "faults"
_KEPT_OR_COUNT = re.compile(r": budget\.limits\[[0-9]+\]: kept: |^[0-9,]+ budgets? checked(: |$)")
# The parts of a comparison in the order of their lists.
TITLES: Mapping[str, str] = {
    "results_added": "Results added",
    "winners": "Cheapest of new jobs",
    "winners_changed": "Changed cheapest choices",
    "predictions": "Predictions",
    "figures": "Other specs",
    "results_removed": "Results removed",
    "results_measured_again": "Results measured again",
    "results_stale": "Results stale",
    "costs": "More costs",
    "left_out": "Left out",
}
_COLUMNS = {**dict.fromkeys((_FAULTS, *TITLES), 1), "costs": 7}
_TABLE_HEAD = (
    "| job | machine | plan | before | after | change | why |\n"
    "| --- | --- | --- | ---: | ---: | ---: | --- |\n"
)
# GitHub refuses a comment of more than 65,536 characters. Rows end at this number of bytes; titles
# and counts of omitted rows need less than ten thousand.
_MOST_BYTES_WITH_ROWS = 50_000
# Rows that are visible before unfolding the others.
_ROWS_ABOVE = 20
# A longer list of changed choices is folded, if there are new jobs.
_ROWS_OPEN = 8
_FORMAT_VERSION = 1
# Letters and a symbol that print nothing.
_INVISIBLE = "\u115f\u1160\u2800\u3164\uffa0"
_LOOK_ALIKES = {"`": "'", "|": "\u00a6"}


@dataclass(frozen=True, slots=True)
class Part:
    """The first rows of a section, with a text for each column, and the number of omitted rows."""

    rows: tuple[tuple[str, ...], ...]
    more: int = 0


@dataclass(frozen=True, slots=True)
class Comment:
    """The data of a comment on a pull request; all fields are empty if nothing is to report.

    ``failed`` is the command that found faults. The keys of ``parts`` are in ``TITLES``, or
    "faults".
    """

    failed: str = ""
    summary: str = ""
    before: str = ""
    after: str = ""
    parts: Mapping[str, Part] = field(default_factory=dict)


def part(rows: Iterable[Sequence[str]]) -> Part:
    """Make a ``Part`` from rows (a text for each column), cut to the limits of a comment."""
    every = list(rows)
    first_rows = tuple(tuple(bounded(text) for text in row) for row in every[:MOST_ROWS])
    return Part(first_rows, min(len(every) - len(first_rows), MOST_COUNTED))


def faults_part(output: str) -> Part:
    """Make the section of faults, with a row for each line that `epochcost check` printed."""
    return part((line,) for line in output.splitlines() if line.strip())


def unkept_budgets_part(output: str) -> Part:
    """Make a ``Part`` of the limits that `check --budgets` found exceeded or of unknown cost."""
    lines = [line for line in output.splitlines() if not _KEPT_OR_COUNT.search(line)]
    return faults_part("\n".join(lines))


def bounded(text: str) -> str:
    """Make a text one line of at most ``MOST_CHARACTERS`` characters, all of them visible."""
    line = plain(text).strip()
    cut = len(line) > MOST_CHARACTERS
    return f"{line[: MOST_CHARACTERS - 1]}…" if cut else line


def write_comment(comment: Comment) -> bytes:
    """Write the data of a comment as JSON."""
    document = {"format_version": _FORMAT_VERSION, **asdict(comment)}
    return json.dumps(document, ensure_ascii=False).encode()


def read_comment(data: bytes) -> Comment:
    """Parse untrusted data of a comment; raises ValueError without quoting invalid data."""
    if len(data) > MOST_BYTES:
        raise ValueError(f"expected at most {MOST_BYTES:,} bytes, got more")
    try:
        document = json.loads(data.decode("utf-8"), object_pairs_hook=_with_unique_keys)
    except RecursionError:
        raise ValueError("expected few nested levels, got too many") from None
    texts = ("failed", "summary", "before", "after")
    document = _require_keys("the document", document, {"format_version", *texts, "parts"})
    if type(document["format_version"]) is not int or document["format_version"] != _FORMAT_VERSION:
        raise ValueError(f"format_version: expected {_FORMAT_VERSION}")
    failed, summary, before, after = (_require_text(name, document[name]) for name in texts)
    if failed not in ("", *CHECKS):
        raise ValueError(f"failed: expected one of {', '.join(CHECKS)}, or nothing")
    parts = document["parts"]
    if type(parts) is not dict or not parts.keys() <= _COLUMNS.keys():
        raise ValueError(f"parts: expected a table of {', '.join(_COLUMNS)}")
    read = {name: _read_part(name, value) for name, value in parts.items()}
    return Comment(failed, summary, before, after, read)


def _with_unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        raise ValueError("expected each key once, got a repeated one")
    return table


def _require_keys(where: str, value: object, keys: set[str]) -> dict[str, Any]:
    if type(value) is not dict or value.keys() != keys:
        raise ValueError(f"{where}: expected a table of {', '.join(sorted(keys))}")
    return value


def _require_text(where: str, value: object) -> str:
    if type(value) is not str or len(value) > MOST_CHARACTERS:
        raise ValueError(f"{where}: expected a text of at most {MOST_CHARACTERS} characters")
    return bounded(value)


def _read_part(name: str, value: object) -> Part:
    table = _require_keys(name, value, {"rows", "more"})
    rows, more, columns = table["rows"], table["more"], _COLUMNS[name]
    if type(more) is not int or not 0 <= more <= MOST_COUNTED:
        raise ValueError(f"{name}.more: expected a whole number from 0 to {MOST_COUNTED:,}")
    if type(rows) is not list or len(rows) > MOST_ROWS:
        raise ValueError(f"{name}.rows: expected a list of at most {MOST_ROWS}")
    if any(type(row) is not list or len(row) != columns for row in rows):
        raise ValueError(f"{name}.rows: expected lists of {columns}")
    return Part(tuple(tuple(_require_text(name, text) for text in row) for row in rows), more)


def markdown(comment: Comment) -> str:
    """Render a comment in Markdown, at most 60,000 bytes; empty if there is nothing to report."""
    if comment == Comment():
        return ""
    parts, text = dict(comment.parts), f"{MARKER}\n"
    faults, costs = parts.pop(_FAULTS, Part(())), parts.get("costs", Part(()))
    if comment.failed:
        noun = "limits that are not kept" if comment.failed == BUDGETS else "faults"
        text += f"**epochcost {comment.failed} found {noun}:**\n\n"
        text += _rows_that_fit(map(_item, faults.rows), faults.more, text) + "\n"
    if comment.summary or parts:
        text += f"### What this changes in cost\n\n{_code_span(comment.summary)}  \n"
        text += f"Between {_code_span(comment.before)} and {_code_span(comment.after)}.\n\n"
    if costs.rows:
        # Predictions follow from other changes, which have rows or sections of their own.
        causes = [row for row in costs.rows if not row[-1].startswith("prediction:")]
        effects = [row for row in costs.rows if row[-1].startswith("prediction:")]
        above = map(_table_row, causes[:_ROWS_ABOVE])
        text += (_TABLE_HEAD + _rows_that_fit(above, 0, text) + "\n") if causes else ""
        parts["costs"] = Part((*causes[_ROWS_ABOVE:], *effects), costs.more)
    # Beside a new model, a long list of what changes for others is folded.
    many = len(parts.get("winners_changed", Part(())).rows) > _ROWS_OPEN
    closed = {"costs", *(["winners_changed"] if "winners" in parts and many else ())}
    for name in TITLES:
        text += _foldable_section(name, parts.get(name, Part(())), text, opened=name not in closed)
    return text


def _foldable_section(name: str, section: Part, text_before: str, *, opened: bool) -> str:
    count = len(section.rows) + section.more
    is_table = name == "costs"
    start = "<details open>" if opened else "<details>"
    head = f"{start}<summary>{TITLES[name]}: {count:,}</summary>\n\n"
    rows = map(_table_row if is_table else _item, section.rows)
    inside = (_TABLE_HEAD if is_table else "") + _rows_that_fit(rows, section.more, text_before)
    return f"{head}{inside}\n</details>\n\n" if count else ""


def _rows_that_fit(rows: Iterable[str], omitted: int, text_before: str) -> str:
    fitting: list[str] = []
    room = _MOST_BYTES_WITH_ROWS - _size(text_before)
    for row in rows:
        room -= _size(row)
        if room < 0:
            omitted += 1
        else:
            fitting.append(row)
    last = f"\nand {omitted:,} more: `epochcost diff` lists them all\n" if omitted else ""
    return "".join(fitting) + last


def _size(text: str) -> int:
    return len(text.encode())


def _table_row(texts: Sequence[str]) -> str:
    return f"| {' | '.join(map(_code_span, texts))} |\n"


def _item(texts: Sequence[str]) -> str:
    return f"- {_code_span(texts[0])}\n"


def _code_span(text: str) -> str:
    # Markdown removes the space at each end.
    return f"` {bounded(text)} `"


def plain(text: str) -> str:
    """Make a text one line of visible characters that read from left to right.

    Other characters become their code point; backticks and pipes become similar characters.
    """
    return "".join(map(_visible, unicodedata.normalize("NFC", text)))


@functools.lru_cache(4096)
def _visible(character: str) -> str:
    if character in _LOOK_ALIKES:
        return _LOOK_ALIKES[character]
    if character.isspace():
        return " "
    combines = unicodedata.category(character) in ("Mn", "Me")
    leftward = unicodedata.bidirectional(character) in ("R", "AL", "AN")
    if character.isprintable() and not combines and not leftward and character not in _INVISIBLE:
        return character
    return f"\\u{{{ord(character):x}}}"
