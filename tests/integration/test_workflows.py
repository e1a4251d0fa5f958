"""The workflows' scripts as GitHub runs them: real git, and a `gh` that keeps its state here."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
SCRIPTS = ROOT / ".github/scripts"
MARKER = "<!-- epochcost diff -->"
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
    method = words[words.index("--method") + 1]
    path = next(w for w in words if w.startswith("repos/"))
    comments = json.loads((state / "comments.json").read_text())
    if method == "GET" and path.endswith("/pulls"):
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


class GitHub:
    """A repository on GitHub as its command line shows it, kept in a folder."""

    def __init__(self, folder: Path) -> None:
        self.state = folder / "github"
        self.artifact = self.state / "comment"
        self.artifact.mkdir(parents=True)
        self._bin = folder / "bin"
        self._bin.mkdir()
        gh = self._bin / "gh"
        gh.write_text(_GH.format(python=sys.executable, state=str(self.state)), "utf-8")
        gh.chmod(0o755)
        head = {"sha": "abc", "label": "someone:cheaper"}
        self._write("pulls", [{"number": 7, "head": head}])
        self._write("comments", [{"id": 1, "user": {"type": "User"}, "body": f"{MARKER}\nquoted"}])

    def _write(self, name: str, value: object) -> None:
        (self.state / f"{name}.json").write_text(json.dumps(value), "utf-8")

    @property
    def comments(self) -> list[str]:
        """The texts of the request's comments; the first is a person's."""
        return [one["body"] for one in json.loads((self.state / "comments.json").read_text())]

    @property
    def environment(self) -> dict[str, str]:
        """What a workflow gives its scripts, with this `gh` first on the path."""
        asked = {"REPOSITORY": "us/costs", "RUN_ID": "12", "GH_TOKEN": "none", "HARDWARE": "box"}
        head = {"HEAD_OWNER": "someone", "HEAD_BRANCH": "cheaper", "HEAD_SHA": "abc"}
        return {**os.environ, **asked, **head, "PATH": f"{self._bin}:{os.environ['PATH']}"}

    def comment(self, text: str, **changes: str) -> str:
        """What the comment's script says when a run has left the text."""
        (self.artifact / "comment.md").write_text(text, "utf-8")
        environment = self.environment | changes
        done = subprocess.run(
            [sys.executable, SCRIPTS / "comment.py"],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout


@pytest.fixture
def github(tmp_path: Path) -> GitHub:
    """A repository with one open request on which a person has quoted our marker."""
    return GitHub(tmp_path)


def test_a_comment_is_made_once_and_renewed_in_place(github: GitHub) -> None:
    """A second run of a request changes the first one's comment and adds none."""
    assert "commented on pull request 7" in github.comment(f"{MARKER}\nA costs less.\n")
    assert "renewed" in github.comment(f"{MARKER}\nB costs more.\n")
    assert github.comments == [f"{MARKER}\nquoted", f"{MARKER}\nB costs more."]


def test_nothing_is_said_where_nothing_changes(github: GitHub) -> None:
    """No change makes no comment, and takes back one that said there was a change."""
    assert "no comment" in github.comment("")
    assert len(github.comments) == 1
    github.comment(f"{MARKER}\nA costs less.\n")
    github.comment("\n")
    assert github.comments[1] == f"{MARKER}\nNo cost changes any more."


def test_a_run_that_left_no_text_says_nothing(github: GitHub) -> None:
    """A run that failed before its comparison leaves an artifact without the file."""
    github.comment(f"{MARKER}\nA costs less.\n")
    (github.artifact / "comment.md").unlink()
    subprocess.run(
        [sys.executable, SCRIPTS / "comment.py"],
        env=github.environment,
        capture_output=True,
        check=True,
    )
    assert "No cost changes any more." in github.comments[1]


def test_a_later_push_keeps_an_older_run_from_commenting(github: GitHub) -> None:
    """A run whose commit is not its request's newest one has nothing to say any more."""
    assert "nothing to comment" in github.comment(f"{MARKER}\nold\n", HEAD_SHA="older")
    assert len(github.comments) == 1


def test_hostile_text_stays_text(github: GitHub) -> None:
    """Text from a fork calls for nobody, is marked as ours and fits into a comment."""
    github.comment("@everyone look\n" + "x" * 70_000)
    body = github.comments[1]
    assert body.startswith(MARKER)
    assert "@everyone" not in body
    assert len(body) < 65_536
    assert "shortened" in body


def _git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    done = subprocess.run(
        ["git", *identity, *words], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def _clone(folder: Path) -> Path:
    """A clone with one commit of a bare remote."""
    _git(folder, "init", "--quiet", "--bare", "--initial-branch=main", "remote.git")
    _git(folder, "clone", "--quiet", "remote.git", "clone")
    clone = folder / "clone"
    (clone / "README.md").write_text("costs\n", "utf-8")
    _git(clone, "add", "README.md")
    _git(clone, "commit", "--quiet", "-m", "Begin")
    _git(clone, "push", "--quiet", "origin", "HEAD:main")
    return clone


def test_results_of_a_run_are_proposed_on_a_branch(github: GitHub, tmp_path: Path) -> None:
    """Only the result files are committed, to the machine's folder, and a request is opened."""
    clone = _clone(tmp_path)
    measured = github.state / "results" / "box"
    measured.mkdir(parents=True)
    (measured / "one.json").write_text("{}", "utf-8")
    (measured / "run.log").write_text("not a result", "utf-8")
    subprocess.run([SCRIPTS / "propose.sh"], cwd=clone, env=github.environment, check=True)
    files = _git(tmp_path / "remote.git", "ls-tree", "-r", "--name-only", "results-box-12")
    assert files.split() == ["README.md", "docs/data/results/box/one.json"]
    calls = (github.state / "calls.txt").read_text("utf-8")
    assert '"pr", "create"' in calls


def test_a_run_without_results_proposes_nothing(github: GitHub, tmp_path: Path) -> None:
    """No branch appears where nothing was measured."""
    clone = _clone(tmp_path)
    (github.state / "results").mkdir()
    done = subprocess.run(
        [SCRIPTS / "propose.sh"],
        cwd=clone,
        env=github.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "nothing to propose" in done.stdout
    assert _git(tmp_path / "remote.git", "branch", "--format=%(refname:short)") == "main"


@pytest.mark.parametrize("script", ["measure.sh", "propose.sh"])
def test_a_machine_that_is_no_id_is_refused(github: GitHub, script: str) -> None:
    """A path in a machine's place never reaches the file system."""
    environment = github.environment | {"HARDWARE": "../elsewhere"}
    done = subprocess.run(
        [SCRIPTS / script, "results"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "demanded a machine's id" in done.stderr


@pytest.mark.parametrize("known", ["site", "push", "nowhere"])
def test_changes_count_from_what_was_published_last(tmp_path: Path, known: str) -> None:
    """What the site says, else the commit before the push; one that is not here counts as none."""
    clone, site = _clone(tmp_path), tmp_path / "site"
    commit = _git(clone, "rev-parse", "HEAD")
    (site / "data").mkdir(parents=True)
    if known == "site":
        (site / "data/publication.json").write_text(json.dumps({"revision": commit}), "utf-8")
    epochcost = tmp_path / "epochcost"
    epochcost.write_text('#!/bin/sh\necho "$1 ${EPOCHCOST_PUBLISHED:-unknown}"\n', "utf-8")
    epochcost.chmod(0o755)
    said = {
        "EPOCHCOST": str(epochcost),
        "EPOCHCOST_SITE_URL": f"{site.as_uri()}/",
        "EPOCHCOST_PUBLISHED": commit if known == "push" else "0" * 40,
    }
    command = [SCRIPTS / "publish.sh", "built"]
    done = subprocess.run(
        command, cwd=clone, env={**os.environ, **said}, capture_output=True, text=True, check=True
    )
    wanted = "unknown" if known == "nowhere" else commit
    assert f"build {wanted}" in done.stdout.splitlines()


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_action_is_pinned_by_its_hash(path: Path) -> None:
    """A tag can be moved to other code; a hash cannot."""
    used = re.findall(r"uses: (\S+)", path.read_text("utf-8"))
    assert used
    assert [one for one in used if not re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", one)] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_no_workflow_runs_a_request_with_secrets(path: Path) -> None:
    """Only reading is granted to all jobs, and no trigger runs a fork's code with our token."""
    text = path.read_text("utf-8")
    assert "pull_request_target" not in text
    assert "secrets." not in text
    assert re.search(r"^permissions:(?: \{\}|\n  contents: read)\n(?!  )", text, re.M)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_step_runs_a_file_or_a_target_that_exists(path: Path) -> None:
    """What a workflow runs is what a person can run: scripts of the repository and make targets."""
    targets = (ROOT / "Makefile").read_text("utf-8")
    for line in re.findall(r"^\s+(?:- )?run: (.+)$", path.read_text("utf-8"), re.M):
        words = [word for word in line.split() if word != "python3"]
        if words[0] == "make":
            assert f"\n{words[1]}:" in targets
        else:
            assert os.access(ROOT / words[0], os.X_OK) or words[0].endswith(".py"), line
            assert (ROOT / words[0]).is_file(), line


def test_bash_reads_every_script() -> None:
    """No script has a fault of syntax."""
    bash = shutil.which("bash")
    assert bash
    for script in SCRIPTS.glob("*.sh"):
        subprocess.run([bash, "-n", script], check=True)
