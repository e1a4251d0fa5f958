"""The workflows' scripts as GitHub runs them: real git, and a `gh` that keeps its state here."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from fake_github import MARKER, SCRIPTS, GitHub
from shown_comment import shown

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


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
    github.leave({"other.md": "text"})
    github.renew()
    assert "No cost changes any more." in github.comments[1]


@pytest.mark.parametrize("what", ["too large", "no archive", "a bomb"])
def test_no_more_is_read_than_a_comment_holds(github: GitHub, what: str) -> None:
    """An archive that compare.sh cannot have made changes no comment; a bomb is cut."""
    github.comment(f"{MARKER}\nA costs less.\n")
    archive = github.state / "comment.zip"
    if what == "a bomb":
        github.leave({"comment.md": "a\n" * 50_000_000})
        assert archive.stat().st_size < 150_000
        assert "renewed" in github.renew()
        assert len(github.comments[1]) < 65_536
        return
    archive.write_bytes(os.urandom(300_000 if what == "too large" else 100))
    assert ", got " in github.renew()
    assert github.comments[1] == f"{MARKER}\nA costs less."


def test_a_later_push_keeps_an_older_run_from_commenting(github: GitHub) -> None:
    """A run whose commit is not its request's newest one has nothing to say any more."""
    assert "nothing to comment" in github.comment(f"{MARKER}\nold\n", HEAD_SHA="older")
    assert len(github.comments) == 1


# Ways to be heard that a fork may try: each with what a reader should see of it.
_HOSTILE = [
    ("@everyone #1 GH-1 us/costs#1 https://example.org www.example.org a@example.org", None),
    (
        "&#64;everyone &#35;1 &commat;all &num;1 https&#58;//example.org",
        "@everyone #1 @all #1 https",
    ),
    ("&amp;#64;everyone \\&#64;all", "&#64;everyone"),
    ("<img src=x onerror=y> <script>1</script> <!-- <details>", None),
    ("![x](https://example.org/x.png) [x](javascript:y) [x][y]", None),
    ("[y]: https://example.org", None),
    ("`a` ``@b`` **c** _d_ ~~e~~ $f$ :smile:", None),
    ("```python\n@everyone\n```", "@everyone"),
    ("~~~\n</details>\n~~~\n@everyone", "@everyone"),
    ("```\n````\n@everyone\n```\n@all", "@all"),
    ("- @all\n# @all\n> @all\n1. @all\n===\n* * *\n+ a", "@all"),
    ("| @all | `@b \\| &#64;c` |\n| --- | ---: |\n| <b>1</b> | #2 |", "@all"),
    ("<details><summary>@all</summary></details>", "@all"),
    ("**@all** [x](y)**  ", "@all"),
    ("\u202e@all \x1b[1m\x00", "@all"),
]


@pytest.mark.parametrize(("text", "seen"), _HOSTILE)
def test_hostile_text_stays_text(github: GitHub, text: str, seen: str | None) -> None:
    """Whatever a fork leaves is shown, calls for nobody and refers to nothing."""
    github.comment(text)
    read, live = shown(github.comments[1])
    assert live == []
    assert (seen or text) in read


def test_what_compare_leaves_stays_as_it_is(github: GitHub) -> None:
    """Tables, folds and fences are as they were meant, their own escapes resolved once."""
    text = (
        "### What this changes in cost\n\n**1 cost changes (1 down)**  \nBetween a\\_b and c.\n\n"
        "| What | Change |\n| --- | ---: |\n| a\\|b @&#8203;x | <span>$</span>1 |\n\n"
        "<details open><summary>Results added: 1</summary>\n\n- one on box\n\n</details>\n\n"
        "```\nspecs/a.toml:1:1: `x`\n```"
    )
    github.comment(f"{MARKER}\n{text}\n")
    written = github.comments[1].replace("\u200b", "").replace("\\(", "(").replace("\\)", ")")
    assert written == f"{MARKER}\n{text}".replace("&#8203;", "")


def test_a_comment_fits(github: GitHub) -> None:
    """GitHub takes 65,536 characters."""
    github.comment("one\n" + "x" * 70_000)
    body = github.comments[1]
    assert body.startswith(f"{MARKER}\none")
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


def test_what_stands_beside_results_is_proposed_where_it_stood(
    github: GitHub, tmp_path: Path
) -> None:
    """Ceilings and limits keep their folders; another machine's and what no run keeps stay out."""
    clone = _clone(tmp_path)
    names = ("box/one.json", "box/ceilings/cpu.json", "box/limits/two.json")
    for name in (*names, "other/three.json", "box/page/four.json", "five.json"):
        path = github.state / "results" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}", "utf-8")
    subprocess.run([SCRIPTS / "propose.sh"], cwd=clone, env=github.environment, check=True)
    files = _git(tmp_path / "remote.git", "ls-tree", "-r", "--name-only", "results-box-12")
    assert set(files.split()) == {"README.md", *(f"docs/data/results/{name}" for name in names)}


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
    assert "expected a machine's id" in done.stderr


@pytest.mark.parametrize("known", ["site", "push", "nowhere"])
def test_changes_count_from_what_was_published_last(tmp_path: Path, known: str) -> None:
    """What the site says, else the commit before the push; one that is not here counts not."""
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
