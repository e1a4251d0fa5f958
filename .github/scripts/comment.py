"""Puts the text that compare.sh left onto its pull request: one comment, renewed in place.

REPOSITORY, RUN_ID, HEAD_OWNER, HEAD_BRANCH and HEAD_SHA say what for; GitHub's `gh` does the
talking with GH_TOKEN. The text comes from code that nobody has reviewed: it is shortened, it cannot
call for anybody's attention, and the request that it goes to is looked up here, not read from it.
"""

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

MARKER = "<!-- epochcost diff -->"
# GitHub takes 65,536 characters; the rest is room for what is put between them.
MOST_CHARACTERS = 60_000
OVER = f"{MARKER}\nNo cost changes any more."


def main() -> None:
    """Create the comment, renew it, or leave it where there is nothing to say."""
    repository = os.environ["REPOSITORY"]
    number = pull_request(repository)
    if number is None:
        print("no open pull request has this run's commit as its newest: nothing to comment")
        return
    comments = f"repos/{repository}/issues/{number}/comments"
    earlier = next((one["id"] for one in listed(comments) if is_ours(one)), None)
    text = harmless(artifact(repository))
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
    """The text of the run, or nothing where it left none."""
    with tempfile.TemporaryDirectory() as folder:
        run = ("run", "download", os.environ["RUN_ID"], "--repo", repository)
        gh(*run, "--name", "comment", "--dir", folder)
        path = Path(folder) / "comment.md"
        return path.read_text("utf-8", "replace") if path.is_file() else ""


def harmless(text: str) -> str:
    """The text short enough for a comment, marked as ours, and without anybody's name called."""
    words = text.strip().removeprefix(MARKER).strip().replace("@", "@\u200b")
    if len(words) > MOST_CHARACTERS:
        words = words[:MOST_CHARACTERS] + "\n\n… shortened; the whole is in the run's artifact."
    return f"{MARKER}\n{words}" if words else ""


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


def gh(*words: str) -> str:
    """What GitHub's command line answers."""
    done = subprocess.run(("gh", *words), check=True, stdout=subprocess.PIPE, encoding="utf-8")
    return done.stdout


if __name__ == "__main__":
    main()
