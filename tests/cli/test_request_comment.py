"""A comment on a pull request refuses hostile data, or shows them as plain text."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest

from epochcost.cli.request_comment import (
    MARKER,
    MOST_BYTES,
    MOST_CHARACTERS,
    MOST_ROWS,
    TITLES,
    Comment,
    Part,
    bounded,
    faults_part,
    markdown,
    part,
    plain,
    read_comment,
    unkept_budgets_part,
    write_comment,
)
from fuzzing_comments import hostile_text, require_inert, run
from shown_comment import shown

# Characters without width (Unicode's Default_Ignorable).
_WITHOUT_WIDTH = (
    *(0x00AD, 0x034F, 0x061C, *range(0x115F, 0x1161), *range(0x17B4, 0x17B6)),
    *(*range(0x180B, 0x1810), *range(0x200B, 0x2010), *range(0x202A, 0x202F)),
    *(*range(0x2060, 0x2070), 0x3164, *range(0xFE00, 0xFE10), 0xFEFF, 0xFFA0),
    *(*range(0xFFF0, 0xFFF9), *range(0x1BCA0, 0x1BCA4), *range(0x1D173, 0x1D17B)),
    *range(0xE0000, 0xE1000),
)
_LISTED = "- ` a `\n"
_COSTS = Part((("job", "machine", "plan", "$2.00", "$1.00", "-$1.00 (-50.0 %)", "price: 2 → 1"),))
_COSTS_OF_NEW = Part((("a",),))
_ROW = (
    "| ` job ` | ` machine ` | ` plan ` | ` $2.00 ` | ` $1.00 ` | ` -$1.00 (-50.0 %) ` "
    "| ` price: 2 → 1 ` |\n"
)


def test_its_text() -> None:
    """Markdown has faults first, then the sum, the table and counted lists."""
    parts = {"costs": _COSTS, "winners": Part((("a",),), 3), "faults": faults_part("x\n\n y\n")}
    text = markdown(Comment("check --budgets", "1 cost changes", "v1", "working tree", parts))
    assert text == (
        f"{MARKER}\n**epochcost check --budgets found limits that are not kept:**\n\n"
        "- ` x `\n- ` y `\n\n"
        "### What this changes in cost\n\n` 1 cost changes `  \n"
        "Between ` v1 ` and ` working tree `.\n\n"
        "| job | machine | plan | before | after | change | why |\n"
        f"| --- | --- | --- | ---: | ---: | ---: | --- |\n{_ROW}\n"
        f"<details open><summary>Cheapest of new jobs: 4</summary>\n\n{_LISTED}\n"
        "and 3 more: `epochcost diff` lists them all\n\n</details>\n\n"
    )


def test_kept_budgets_are_no_faults() -> None:
    """A comment has only those limits that are not kept, and errors."""
    place = "specs/studies/a.toml:9:3: budget.limits"
    exceeded, unknown = f"{place}[1]: exceeded: expected x", f"{place}[2]: unknown: expected y"
    problem = "docs/data/results/a.json: expected a model with a spec (left out of the site)"
    lines = [problem, f"{place}[0]: kept: expected z, got 1", exceeded, unknown]
    for count in ("3 budgets checked: 1 exceeded, 1 kept, 1 unknown", "1 budget checked"):
        part = unkept_budgets_part("\n".join((*lines, count)))
        assert part.rows == ((problem,), (exceeded,), (unknown,))


def test_other_models_are_folded_beside_a_new_one() -> None:
    """A long list of changed choices is folded if the request adds a model."""
    changed = {"winners_changed": Part((("b",),) * 9)}
    title = "<summary>Changed cheapest choices: 9</summary>"
    alone = markdown(Comment("", "1 change", "v1", "v2", changed))
    assert f"<details open>{title}" in alone
    beside = markdown(Comment("", "2 changes", "v1", "v2", {"winners": _COSTS_OF_NEW, **changed}))
    assert f"<details>{title}" in beside
    assert beside.index("of new jobs") < beside.index(title)
    short = {"winners": _COSTS_OF_NEW, "winners_changed": Part((("b",),))}
    few = markdown(Comment("", "2 changes", "v1", "v2", short))
    assert "<details open><summary>Changed cheapest choices: 1</summary>" in few


def test_nothing_to_say() -> None:
    """An empty comment has no text and no marker."""
    assert markdown(Comment()) == ""
    assert read_comment(write_comment(Comment())) == Comment()


def test_every_character_is_visible_or_a_number() -> None:
    """No Unicode character becomes a backtick, pipe, line break or invisible character."""
    points = range(0x110000)
    shown_as = {point: plain(chr(point)) for point in points}
    assert all(text.isprintable() and text for text in shown_as.values())
    assert not {"`", "|", "\n", "\r", "\u2028"} & set("".join(shown_as.values()))
    assert all(shown_as[point] == f"\\u{{{point:x}}}" for point in _WITHOUT_WIDTH)
    assert [shown_as[ord(character)] for character in "aé→€中😀\\$<&@#"] == [*"aé→€中😀\\$<&@#"]
    for point in (0x202E, 0x2066, 0x5D0, 0x627, 0x300, 0xD800, 0):
        assert shown_as[point] == f"\\u{{{point:x}}}"


def test_a_text_is_cut_once() -> None:
    """A text is cut to the limit, and cutting the cut text again changes nothing."""
    for number in range(500):
        text = hostile_text(random.Random(number)) * 20
        assert len(bounded(text)) <= MOST_CHARACTERS
        assert bounded(bounded(text)) == bounded(text)


def test_the_largest_comment_is_read() -> None:
    """A comment whose texts all have the greatest length keeps the limits of file and comment."""
    long = "\U0001f600" * (MOST_CHARACTERS + 1)
    rows = [[long]] * (MOST_ROWS + 1)
    parts = {name: part(rows) for name in TITLES} | {"faults": part(rows)}
    parts["costs"] = part([[long] * 7] * (MOST_ROWS + 1))
    comment = Comment("check", bounded(long), bounded(long), bounded(long), parts)
    data = write_comment(comment)
    assert len(data) <= MOST_BYTES
    assert read_comment(data) == comment
    text = markdown(comment)
    assert len(text.encode()) <= 60_000
    left_out = sum(map(int, re.findall(r"\nand (\d+) more: ", text)))
    assert text.count("\n- ") + left_out == len(parts) * (MOST_ROWS + 1)
    require_inert(comment)


_SOUND: dict[str, Any] = json.loads(
    write_comment(Comment("check", "a", "b", "c", {"costs": _COSTS, "winners": Part((("x",),))}))
)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"format_version": 2}, "format_version: expected 1"),
        ({"format_version": True}, "format_version: expected 1"),
        ({"failed": "rm"}, "failed: expected one of check, "),
        ({"summary": 1}, "summary: expected a text of at most 500 characters"),
        ({"summary": "x" * 501}, "summary: expected a text of at most 500 characters"),
        ({"link": "x"}, "the document: expected a table of after, before, "),
        ({"parts": []}, "parts: expected a table of faults, "),
        ({"parts": {"<b>": {}}}, "parts: expected a table of faults, "),
        ({"parts": {"winners": {"rows": []}}}, "winners: expected a table of more, rows"),
        ({"parts": {"winners": {"rows": [], "more": -1}}}, "winners.more: expected a whole number"),
        (
            {"parts": {"winners": {"rows": [], "more": 1e6}}},
            "winners.more: expected a whole number",
        ),
        ({"parts": {"winners": {"rows": [[]], "more": 0}}}, "winners.rows: expected lists of 1"),
        ({"parts": {"costs": {"rows": [["a"]], "more": 0}}}, "costs.rows: expected lists of 7"),
        (
            {"parts": {"winners": {"rows": [["a"]] * 201, "more": 0}}},
            "winners.rows: expected a lis",
        ),
        ({"parts": {"winners": {"rows": [["x" * 501]], "more": 0}}}, "winners: expected a text"),
    ],
)
def test_other_data_are_refused(change: dict[str, Any], fault: str) -> None:
    """Each wrong value is refused with its place."""
    read_comment(json.dumps(_SOUND).encode())
    with pytest.raises(ValueError, match=f"^{fault}"):
        read_comment(json.dumps(_SOUND | change).encode())


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b" " * (MOST_BYTES + 1), "expected at most 8,000,000 bytes"),
        (b"[" * 100_000, "expected few nested levels"),
        (b"\xff", "invalid start byte"),
        (b"{", "Expecting property name"),
        (b'{"failed": "", "failed": ""}', "expected each key once"),
        (b"1" * 5000, "integer string conversion"),
        (b"null", "the document: expected a table"),
    ],
)
def test_what_is_no_document_of_ours_is_refused(data: bytes, fault: str) -> None:
    """Too many bytes, too deep nesting, invalid UTF-8 or JSON, and repeated keys."""
    with pytest.raises(ValueError, match=fault):
        read_comment(data)


@pytest.mark.parametrize(
    "text",
    [
        "<img src=x>", "<!-- x -->", "</details>\n```\n[a](//x) @all\n```", "![](//x)", "[a](b)",
        "a #1", "@all", "GH-1", "https://x.org", "www.x.org", ":smile:", "$x$", "*a*", "> a",
        "0123abc", "<?x?>", "<!X>", "~~a~~",
    ],
)  # fmt: skip
def test_what_is_alive_is_seen(text: str) -> None:
    """The check of rendered Markdown detects links, images, mentions and HTML."""
    assert shown(f"{MARKER}\n{text}\n").live


def test_hostile_comments() -> None:
    """80 hostile comments and damaged data are refused or shown as text."""
    outcomes = run(0, 80)
    assert outcomes["damage refused"] > 40
    assert outcomes["damage shown as text"] > 2


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_ten_thousand_hostile_comments() -> None:
    """10,000 other hostile comments are refused or shown as text."""
    assert run(200, 10_000).total() == 10_000
