"""Puts the text that compare.sh left onto its pull request: one comment, renewed in place.

    comment.py [FILE]

REPOSITORY, HEAD_OWNER, HEAD_BRANCH and HEAD_SHA say what for; GitHub's `gh` does the talking with
GH_TOKEN. The text stands in FILE, else in the artifact of the run RUN_ID. It comes from code that
nobody has reviewed, so that nothing of it is taken as it is: no more is read than a comment holds,
its lines are taken apart and written anew, with no mark-up but that of the lines, and the request
that it goes to is looked up here.
"""

import html
import io
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MARKER = "<!-- epochcost diff -->"
# GitHub takes 65,536 characters; the rest is room for what is put between them.
MOST_CHARACTERS = 60_000
# Of a file, and of the archive that brings it; compare.sh leaves 80,000 characters at most.
MOST_BYTES = 200_000
OVER = f"{MARKER}\nNo cost changes any more."
SHORTENED = "\n\n… shortened; the whole is in the run's artifact."
# A line's own mark-up, which stays, around the text in it.
SUMMARY = re.compile(r"(<details(?: open)?><summary>)(.*)(</summary>)")
LINE = re.compile(r"(### |- |\*\*)?(.*?)(\*\*(?:  )?)?")
RULE = re.compile(r"\|(?: -{3}:? \|)+")
CELLS = re.compile(r"(?<!\\)\|")
FENCE = re.compile(r"`{3,}")
BACKSLASHED = re.compile(r"\\([!-/:-@\[-`{-~])")
# GitHub looks for people, issues, addresses, pictures of words and formulas where Markdown is done
# already, and so sees through entities and backslashes. What has no width keeps them apart.
FOUND_LATER = re.compile(r"[@#]|(?<=GH)-|:(?=//|[\w+-]+:)|(?<=www)(?=\.)", re.IGNORECASE)
APART = "\u200b"
MARKUP = re.compile(r"[\\`*_{}\[\]()!|~]|^[-+=]|(?<=\d)\.(?= |$)")
DOLLAR = "<span>$</span>"  # GitHub's own way to write one that begins no formula


def main() -> None:
    """Create the comment, renew it, or leave it where there is nothing to say."""
    repository = os.environ["REPOSITORY"]
    number = pull_request(repository)
    if number is None:
        print("no open pull request has this run's commit as its newest: nothing to comment")
        return
    comments = f"repos/{repository}/issues/{number}/comments"
    earlier = next((one["id"] for one in listed(comments) if is_ours(one)), None)
    text = harmless(left(Path(sys.argv[1])) if sys.argv[1:] else artifact(repository))
    if not text and earlier is None:
        print("nothing changes in cost: no comment")
    elif earlier is None:
        send("POST", comments, text)
        print(f"commented on pull request {number}")
    else:
        send("PATCH", f"repos/{repository}/issues/comments/{earlier}", text or OVER)
        print(f"renewed the comment on pull request {number}")


def pull_request(repository: str) -> int | None:
    """The open request whose newest commit the run was for; a later push has a run of its own."""
    head = f"{os.environ['HEAD_OWNER']}:{os.environ['HEAD_BRANCH']}"
    found = listed(f"repos/{repository}/pulls", "-f", "state=open", "-f", f"head={head}")
    numbers = (one["number"] for one in found if one["head"]["sha"] == os.environ["HEAD_SHA"])
    return next(numbers, None)


def is_ours(comment: dict[str, Any]) -> bool:
    """Whether a workflow wrote the comment with this script; a person may quote the marker."""
    return comment["user"]["type"] == "Bot" and str(comment["body"]).startswith(MARKER)


def artifact(repository: str) -> str:
    """The text of the run, or nothing where it left none.

    Raises SystemExit for what compare.sh cannot have left; the comment then stays as it is.
    """
    path = f"repos/{repository}/actions/runs/{os.environ['RUN_ID']}/artifacts"
    pages = json.loads(gh("api", "--method", "GET", "--paginate", "--slurp", path))
    named = [one for page in pages for one in page["artifacts"] if one["name"] == "comment"]
    newest = max(named, key=lambda one: int(one["id"]), default=None)
    if newest is None:
        return ""
    if newest["size_in_bytes"] > MOST_BYTES:
        sys.exit(f"expected an artifact of {MOST_BYTES:,} bytes, got {newest['size_in_bytes']:,}")
    packed = gh("api", f"repos/{repository}/actions/artifacts/{newest['id']}/zip")
    try:
        with zipfile.ZipFile(io.BytesIO(packed)) as files:
            if "comment.md" not in files.namelist():
                return ""
            with files.open("comment.md") as file:
                return file.read(MOST_BYTES).decode("utf-8", "replace")
    except (EOFError, OSError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        sys.exit(f"expected an archive with a comment, got {error}")


def left(path: Path) -> str:
    """The text that this very run left, or nothing where it left none."""
    return path.read_bytes()[:MOST_BYTES].decode("utf-8", "replace") if path.is_file() else ""


def harmless(text: str) -> str:
    """The text's lines written anew, short enough for a comment, and marked as ours."""
    words = text.strip().removeprefix(MARKER).strip()
    if not words:
        return ""
    written, room = MARKER, MOST_CHARACTERS
    for block in blocks(words.splitlines()):
        room -= len(block) + 1
        if room < 0:
            return written + SHORTENED
        written += f"\n{block}"
    return written


def blocks(lines: list[str]) -> Iterator[str]:
    """Each line, and what stands in a fence as one; an open fence ends where the text does."""
    rest = iter(lines)
    for line in rest:
        if not FENCE.fullmatch(line):
            yield shown(line)
            continue
        inside = "\n".join(itertools.takewhile(lambda one, end=line: one != end, rest))
        fence = max(("```", *(f"{run}`" for run in FENCE.findall(inside))), key=len)
        yield f"{fence}\n{inside}\n{fence}"


def shown(line: str) -> str:
    """A line with its own mark-up, and the text in it as text."""
    if not line or line == "</details>" or RULE.fullmatch(line):
        return line
    if line.startswith("| ") and line.endswith(" |"):
        return f"|{'|'.join(f' {plain(cell)} ' for cell in CELLS.split(line)[1:-1])}|"
    found = SUMMARY.fullmatch(line) or LINE.fullmatch(line)
    assert found is not None
    head, words, tail = found.groups(default="")
    return f"{head}{plain(words)}{tail}"


def plain(text: str) -> str:
    """What the text says, after its own escapes, so that nothing in it means anything."""
    said = html.unescape(BACKSLASHED.sub(r"\1", text.replace(DOLLAR, "$")))
    said = "".join(one for one in " ".join(said.split()) if one.isprintable())
    said = MARKUP.sub(r"\\\g<0>", FOUND_LATER.sub(rf"\g<0>{APART}", said))
    return html.escape(said, quote=False).replace("$", DOLLAR)


def listed(path: str, *options: str) -> list[dict[str, Any]]:
    """All pages of a list."""
    pages = json.loads(gh("api", "--method", "GET", "--paginate", "--slurp", path, *options))
    return [one for page in pages for one in page]


def send(method: str, path: str, text: str) -> None:
    """One comment's text, which stands in a file so that no length is too much for a call."""
    with tempfile.NamedTemporaryFile("w", suffix=".md", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        gh("api", "--method", method, path, "-F", f"body=@{file.name}", "--silent")


def gh(*words: str) -> bytes:
    """What GitHub's command line answers."""
    return subprocess.run(("gh", *words), check=True, stdout=subprocess.PIPE).stdout


if __name__ == "__main__":
    main()
