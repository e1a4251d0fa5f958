"""Hostile and damaged data of comments must be refused in one line or shown as plain text.

    PYTHONPATH=tests python -m fuzzing_comments FIRST COUNT

Each number stands for a comment with hostile texts in all fields. The comment is written, read and
rendered. A Markdown parser then checks that the rendered pieces of code are the texts, and that the
text around them is the same as for harmless texts. Then bytes or values of the data are damaged:
the damaged data must be refused or pass the same check.
"""

from __future__ import annotations

import collections
import dataclasses
import json
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any

from epochcost.cli.request_comment import (
    CHECKS,
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
    read_comment,
    write_comment,
)
from shown_comment import shown

# Pieces that begin or end a construct of Markdown or HTML, or that GitHub looks for.
_PIECES = (
    *("`", "``", "```", "````", "\n```\n", "```\n@a\n```", "~~~", "\n~~~\n", "` |", "`|`", "\\`"),
    *("|", "\\|", "\\\\|", " | ", "|\n| --- |\n|", "\n| a |\n", "\\", "\n", "\n\n", "\r", "\r\n"),
    *(
        "<details>",
        "</details>",
        "</details>\n```\n",
        "<details><summary>",
        "</summary>",
        "</code>",
    ),
    *("</table>", "<td>", "</td>", "<img src=x onerror=y>", "<script>1</script>", "<a href=//x>"),
    *("<!--", "-->", "<!-- epochcost diff -->", "<?", "?>", "<![CDATA[", "]]>", "<!X", "<br>"),
    *("@everyone", "@us/all", "#1", "GH-1", "us/costs#1", "us/costs@0123abc", "0123456789abcdef"),
    *("https://example.org", "www.example.org", "mailto:a@example.org", "a@example.org", "//x.org"),
    *(
        "<https://example.org>",
        "[a](javascript:y)",
        "![a](//x/y.png)",
        "[a]: //x",
        "[a][b]",
        "[^1]",
    ),
    *("&#64;all", "&commat;all", "&lt;b&gt;", "&#x60;", "&#124;", "&NewLine;", "&Tab;", "&"),
    *("*a*", "**", "_a_", "__", "~~a~~", "$x$", "$$", "$`x`$", ":smile:", "- ", "- [ ] a", "1. "),
    *("# ", "> ", "===", "---", "* * *", "    ", "\t", "+ ", "[!WARNING]", "/approve", "fixes #1"),
    *("\u202e", "\u2066", "\u200b", "\u200d", "\ufeff", "\u2060", "\u2028", "\u00a0", "\u3000"),
    *("\0", "\x1b[1m", "\x08", "\x7f", "\ud800", "\udfff", "\ue000", "\U000e0041", "\ufffe"),
    *(
        "\u05d0",
        "\u0627",
        "a\u0301",
        "\u0300" * 9,
        "\ufe0f",
        "\u115f",
        "\u1160",
        "\u3164",
        "\u034f",
    ),
    *("\uff5c", "\uff20all", "\uff40", "\u00e9", "\u2192", "$0.50", "a", "word", " ", "0"),
)
_VALUES = ("null", "true", "0", "1", "-1", "1e99", "0.5", '""', '"a"', "[]", "{}", '[["a"]]', "NaN")
_MOST_PIECES = 12
# A letter of so many bytes.
_LETTERS = ("", "x", "\u00e9", "\u4e2d", "\U00020000")


def hostile_text(rng: random.Random) -> str:
    """Random pieces of markup or random characters, sometimes longer than a text may be."""
    if rng.random() < 0.1:
        return "".join(chr(rng.randrange(0x110000)) for _ in range(rng.randrange(9)))
    pieces = rng.choices(_PIECES, k=rng.randrange(_MOST_PIECES))
    return "".join(pieces) * (200 if rng.random() < 0.02 else 1)


def hostile_comment(rng: random.Random) -> Comment:
    """A comment whose texts are all hostile, sometimes with more rows than are shown."""
    parts = {}
    for name in rng.sample(tuple(TITLES), rng.randrange(4)):
        count = rng.choice((0, 1, 1, 2, 25)) if rng.random() < 0.99 else MOST_ROWS + 1
        columns = 7 if name == "costs" else 1
        rows = [[hostile_text(rng) for _ in range(columns)] for _ in range(count)]
        parts[name] = part(rows)
    failed = rng.choice(("", "", *CHECKS))
    if failed:
        lines = (hostile_text(rng) for _ in range(rng.randrange(4)))
        parts["faults"] = faults_part("\n".join(lines))
    labels = (bounded(hostile_text(rng)) for _ in range(3))
    return Comment(failed, *labels, parts)


def hostile_data(comment: Comment, rng: random.Random) -> bytes:
    """The data of ``comment`` with hostile texts that were not cleaned."""
    document = json.loads(write_comment(comment))
    _replace_texts(document, lambda _: hostile_text(rng)[:MOST_CHARACTERS])
    document["failed"] = comment.failed
    return json.dumps(document).encode()


def _replace_texts(value: Any, replacement: Callable[[str], str]) -> None:
    for key, item in list(value.items() if isinstance(value, dict) else enumerate(value)):
        if isinstance(item, dict | list):
            _replace_texts(item, replacement)
        elif isinstance(item, str):
            value[key] = replacement(item)


def damaged(data: bytes, rng: random.Random) -> bytes:
    """``data`` with other bytes, or with another value, key or depth at a random place."""
    if rng.random() < 0.3:
        at = rng.randrange(len(data))
        return data[:at] + rng.randbytes(rng.randrange(5)) + data[at + rng.randrange(9) :]
    if rng.random() < 0.02:
        return b'{"parts":' + b"[" * rng.choice((30, 100_000)) + data
    document = json.loads(data)
    for _ in range(rng.choice((1, 1, 2))):
        _change(*rng.choice(list(_places(document)) or [({}, "")]), rng)
    return json.dumps(document).encode()


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    for key, item in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, key
        if isinstance(item, dict | list):
            yield from _places(item)


def _change(holder: Any, key: Any, rng: random.Random) -> None:
    kind = rng.choice(("value", "value", "more", "less", "long"))
    value = json.loads(rng.choice(_VALUES))
    if kind == "value":
        holder[key] = value
    elif kind == "long":
        holder[key] = rng.choice(("x" * (MOST_CHARACTERS + 1), [["x"]] * (MOST_ROWS + 1)))
    elif kind == "more" and isinstance(holder, dict):
        holder[rng.choice(("x", "__proto__", *_PIECES))] = value
    elif kind == "more":
        holder.append(value)
    elif isinstance(holder, dict):
        holder.pop(key, None)
    elif holder:
        holder.pop()


def require_inert(comment: Comment) -> None:
    """Raise AssertionError unless a comment shows its texts as plain text only."""
    text = markdown(comment)
    assert len(text) < 60_000
    assert len(text.encode("utf-16-le")) // 2 < 60_000
    if not text:
        assert comment == Comment()
        return
    assert text.startswith(f"{MARKER}\n")
    seen = shown(text)
    assert seen.live == [], seen.live
    texts: collections.Counter[str] = collections.Counter()
    expected = shown(markdown(_mapped(comment, _harmless)))
    assert seen.frame == expected.frame, (seen.frame, expected.frame)
    assert len(seen.codes) == len(expected.codes)
    _mapped(comment, lambda text: texts.update([bounded(text)]) or text)
    codes = collections.Counter(code.strip() for code in seen.codes if code != "epochcost diff")
    assert codes <= texts, codes - texts


def _harmless(text: str) -> str:
    """Letters with as many bytes as ``text``, so that as many rows fit."""
    return "".join(_LETTERS[len(character.encode())] for character in bounded(text))


def _mapped(comment: Comment, change: Callable[[str], str]) -> Comment:
    parts = {
        name: Part(tuple(tuple(map(change, row)) for row in each.rows), each.more)
        for name, each in comment.parts.items()
    }
    summary, before, after = map(change, (comment.summary, comment.before, comment.after))
    return dataclasses.replace(comment, summary=summary, before=before, after=after, parts=parts)


def outcome(number: int) -> str:
    """The outcome for the damaged data of comment ``number``; AssertionError if it is active."""
    rng = random.Random(number)
    comment = hostile_comment(rng)
    data = write_comment(comment)
    assert len(data) <= MOST_BYTES
    assert read_comment(data) == comment
    require_inert(comment)
    data = hostile_data(comment, rng)
    require_inert(read_comment(data))
    try:
        read = read_comment(damaged(data, rng))
    except ValueError as error:
        fault = str(error)
    else:
        require_inert(read)
        return "damage shown as text"
    assert fault.isprintable(), f"not one line: {fault!r}"
    assert len(fault) < 300
    return "damage refused"


def run(first: int, count: int) -> collections.Counter[str]:
    """Count the outcomes of ``count`` comments; raises at the first active one."""
    outcomes: collections.Counter[str] = collections.Counter()
    for number in range(first, first + count):
        try:
            outcomes[outcome(number)] += 1
        except BaseException:
            sys.stderr.write(f"damage {number}\n")
            raise
    return outcomes


def main() -> None:
    """Run the comments of the command line and print their outcomes."""
    first, count = map(int, sys.argv[1:])
    for text, times in sorted(run(first, count).items()):
        sys.stdout.write(f"{times:7} {text}\n")


if __name__ == "__main__":
    main()
