"""GitHub for the workflows' scripts: a `gh` that keeps requests, comments and artifacts here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

from epochcost.cli.request_comment import MARKER, Comment, write_comment

SCRIPTS = Path(__file__).parents[1] / ".github/scripts"
# Answers as `gh` does to the calls of the scripts; requests, comments and artifacts are files.
_GH = """#!{python}
import json, pathlib, shutil, sys
state = pathlib.Path({state!r})
words = sys.argv[1:]
def field(name):
    return next(w.split("=", 1)[1] for w in words if w.startswith(name + "="))
if words[:2] == ["run", "download"]:
    name, folder = (words[words.index(o) + 1] for o in ("--name", "--dir"))
    shutil.copytree(state / name, folder, dirs_exist_ok=True)
elif words[0] == "api":
    method = words[words.index("--method") + 1] if "--method" in words else "GET"
    path = next(w for w in words if w.startswith("repos/"))
    if method in (refused := json.loads((state / "refused.json").read_text())):
        sys.exit(f"gh: {{refused[method]}}")
    comments = json.loads((state / "comments.json").read_text())
    if path.endswith("/zip"):
        archive = (state / "comment.zip").read_bytes()
        sys.stdout.buffer.write(archive)
    elif path.endswith("/artifacts"):
        other, size = {{"id": 9, "name": "results"}}, (state / "comment.zip").stat().st_size
        ours = {{"id": 3, "name": "comment", "size_in_bytes": size}}
        print(json.dumps([{{"artifacts": [other]}}, {{"artifacts": [ours]}}]))
    elif method == "GET" and path.endswith("/pulls"):
        pulls = json.loads((state / "pulls.json").read_text())
        print(json.dumps([[p for p in pulls if p["head"]["label"] == field("head")]]))
    elif method == "GET":
        print(json.dumps([comments[:1], comments[1:]]))
    else:
        body = pathlib.Path(field("body").removeprefix("@")).read_text()
        if method == "POST":
            comments.append({{"id": len(comments) + 1, "user": {{"type": "Bot"}}, "body": body}})
        else:
            comments[int(path.rsplit("/", 1)[1]) - 1]["body"] = body
        (state / "comments.json").write_text(json.dumps(comments))
else:
    with (state / "calls.txt").open("a") as calls:
        calls.write(json.dumps(words) + "\\n")
"""


def write_program(path: Path) -> str:
    """Write a program that runs this checkout's `epochcost`; returns its path."""
    path.write_text(f'#!/bin/sh\nexec {sys.executable} -m epochcost "$@"\n', "utf-8")
    path.chmod(0o755)
    return str(path)


class GitHub:
    """A repository on GitHub as its command line shows it; the data are files in a folder."""

    def __init__(self, folder: Path) -> None:
        self.state = folder / "github"
        self.state.mkdir()
        self._bin = folder / "bin"
        self._bin.mkdir()
        gh = self._bin / "gh"
        gh.write_text(_GH.format(python=sys.executable, state=str(self.state)), "utf-8")
        gh.chmod(0o755)
        head = {"sha": "abc", "label": "someone:cheaper"}
        self._write("pulls", [{"number": 7, "head": head}])
        self._write("comments", [{"id": 1, "user": {"type": "User"}, "body": f"{MARKER}\nquoted"}])
        self._write("refused", {})

    def _write(self, name: str, value: object) -> None:
        (self.state / f"{name}.json").write_text(json.dumps(value), "utf-8")

    @property
    def comments(self) -> list[str]:
        """The texts of the pull request's comments, of which a person wrote the first."""
        return [one["body"] for one in json.loads((self.state / "comments.json").read_text())]

    @property
    def environment(self) -> dict[str, str]:
        """The variables that a workflow sets for its scripts, with this `gh` first on the path."""
        asked = {"REPOSITORY": "us/costs", "RUN_ID": "12", "GH_TOKEN": "none", "HARDWARE": "box"}
        head = {"HEAD_OWNER": "someone", "HEAD_BRANCH": "cheaper", "HEAD_SHA": "abc"}
        return {**os.environ, **asked, **head, "PATH": f"{self._bin}:{os.environ['PATH']}"}

    def refuse(self, method: str, message: str) -> None:
        """Let all calls of an HTTP method fail with this message."""
        self._write("refused", {method: message})

    def comment(self, comment: Comment, **changes: str) -> str:
        """The output of the comment's script after a run has left the data of a comment."""
        self.leave({"comment.json": write_comment(comment)})
        return self.renew(**changes).stdout

    def leave(self, files: dict[str, bytes]) -> None:
        """Store these files as the artifact of a run."""
        with zipfile.ZipFile(self.state / "comment.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in files.items():
                archive.writestr(name, data)

    def renew(self, *files: Path, **changes: str) -> subprocess.CompletedProcess[str]:
        """Run the comment's script on a file, or else on the artifact of a run."""
        done = subprocess.run(
            [sys.executable, SCRIPTS / "comment.py", *files],
            env=self.environment | changes,
            capture_output=True,
            text=True,
            check=False,
        )
        assert "Traceback" not in done.stderr
        assert (done.stdout + done.stderr).count("\n") == 1
        return done
