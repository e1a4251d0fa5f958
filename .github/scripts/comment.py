"""Puts what compare.py left onto its pull request: one comment, renewed in place.

    comment.py [FILE]

REPOSITORY, HEAD_OWNER, HEAD_BRANCH and HEAD_SHA name the request; GitHub's `gh` does the talking
with GH_TOKEN. The data are in FILE, else in the artifact of the run RUN_ID. They come from code
that nobody has reviewed: `request_comment` reads them and writes their Markdown. The request that
gets the comment is looked up here.
"""

import io
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

sys.dont_write_bytecode = True  # no files beside the scripts
from request_comment import MARKER, MOST_BYTES, markdown, read_comment  # noqa: E402

FILE = "comment.json"
OVER = f"{MARKER}\nNo cost changes any more."
FORBIDDEN = "(HTTP 403)"


class GitHubError(Exception):
    """What `gh` says of a call that failed."""


def main() -> None:
    """Comment, or say in one line why not; a token that may not write is no failure."""
    try:
        print(comment(os.environ["REPOSITORY"]))
    except GitHubError as error:
        if FORBIDDEN not in str(error):
            sys.exit(f"no comment: {error}")
        print(f"no comment: {error}; the summary of the job that compared has it (a fork's run?)")
    except ValueError as error:
        sys.exit(f"no comment: not what compare.py leaves: {error}")


def comment(repository: str) -> str:
    """Create the comment, renew it, or leave it if there is nothing to say; what was done."""
    number = pull_request(repository)
    if number is None:
        return "no open pull request has this run's commit as its newest: nothing to comment"
    data = left(Path(sys.argv[1])) if sys.argv[1:] else artifact(repository)
    if data is None:
        return "the run left no comparison: nothing to comment"
    text = markdown(read_comment(data))
    comments = f"repos/{repository}/issues/{number}/comments"
    earlier = next((old["id"] for old in listed(comments) if is_ours(old)), None)
    if earlier is not None:
        send("PATCH", f"repos/{repository}/issues/comments/{earlier}", text or OVER)
        return f"renewed the comment on pull request {number}"
    if not text:
        return "nothing changes in cost: no comment"
    send("POST", comments, text)
    return f"commented on pull request {number}"


def pull_request(repository: str) -> int | None:
    """The open request whose newest commit the run was for; a later push has a run of its own."""
    head = f"{os.environ['HEAD_OWNER']}:{os.environ['HEAD_BRANCH']}"
    requests = listed(f"repos/{repository}/pulls", "-f", "state=open", "-f", f"head={head}")
    sha = os.environ["HEAD_SHA"]
    return next((request["number"] for request in requests if request["head"]["sha"] == sha), None)


def is_ours(comment: dict[str, Any]) -> bool:
    """Whether a workflow wrote the comment with this script; a person may quote the marker."""
    return comment["user"]["type"] == "Bot" and str(comment["body"]).startswith(MARKER)


def artifact(repository: str) -> bytes | None:
    """The data that the run left, None if it left none; ValueError for a damaged archive."""
    path = f"repos/{repository}/actions/runs/{os.environ['RUN_ID']}/artifacts"
    pages = json.loads(gh("api", "--method", "GET", "--paginate", "--slurp", path))
    artifacts = [artifact for page in pages for artifact in page["artifacts"]]
    comments = [artifact for artifact in artifacts if artifact["name"] == "comment"]
    newest = max(comments, key=lambda artifact: int(artifact["id"]), default=None)
    if newest is None:
        return None
    if newest["size_in_bytes"] > MOST_BYTES:
        raise ValueError(f"expected an archive of at most {MOST_BYTES:,} bytes, got more")
    packed = gh("api", f"repos/{repository}/actions/artifacts/{newest['id']}/zip")
    try:
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            if FILE not in archive.namelist():
                return None
            with archive.open(FILE) as file:
                return file.read(MOST_BYTES + 1)
    except Exception as error:  # a damaged archive ends in errors of many modules
        raise ValueError(f"expected an archive, got a {type(error).__name__}") from None


def left(path: Path) -> bytes | None:
    """The data that this very run left, None if it left none."""
    if not path.is_file():
        return None
    with path.open("rb") as file:
        return file.read(MOST_BYTES + 1)


def listed(path: str, *options: str) -> list[dict[str, Any]]:
    """All pages of a list."""
    pages = json.loads(gh("api", "--method", "GET", "--paginate", "--slurp", path, *options))
    return [entry for page in pages for entry in page]


def send(method: str, path: str, text: str) -> None:
    """Send the text of a comment, in a file so that no length is too much for a call."""
    with tempfile.NamedTemporaryFile("w", suffix=".md", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        gh("api", "--method", method, path, "-F", f"body=@{file.name}", "--silent")


def gh(*words: str) -> bytes:
    """What GitHub's command line answers; GitHubError with what it says if a call fails."""
    try:
        return subprocess.run(("gh", *words), check=True, capture_output=True).stdout
    except subprocess.CalledProcessError as error:
        raise GitHubError(" ".join(error.stderr.decode("utf-8", "replace").split())) from None
    except OSError as error:
        raise GitHubError(f"GitHub's `gh` cannot be run: {error.strerror}") from None


if __name__ == "__main__":
    main()
