"""The workflows' scripts as on GitHub: real git, and a `gh` with local state."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from epochcost.cli.request_comment import (
    MARKER,
    MOST_BYTES,
    Comment,
    Part,
    markdown,
    write_comment,
)
from fake_github import SCRIPTS, GitHub
from revisions import commit, git
from shown_comment import shown

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


@pytest.fixture
def github(tmp_path: Path) -> GitHub:
    """A repository with one open request, in which a person quoted our marker."""
    return GitHub(tmp_path)


CHEAPER, DEARER = Comment(summary="A costs less"), Comment(summary="B costs more")


def test_a_comment_is_made_once_and_renewed_in_place(github: GitHub) -> None:
    """A second run edits the first run's comment and adds none."""
    assert "commented on pull request 7" in github.comment(CHEAPER)
    assert "renewed" in github.comment(DEARER)
    assert github.comments == [f"{MARKER}\nquoted", markdown(DEARER)]


def test_nothing_is_said_where_nothing_changes(github: GitHub) -> None:
    """Without a change there is no comment, and an earlier one is removed."""
    assert "no comment" in github.comment(Comment())
    assert len(github.comments) == 1
    github.comment(CHEAPER)
    github.comment(Comment())
    assert github.comments[1] == f"{MARKER}\nNo cost changes any more."


def test_a_run_that_left_no_comparison_changes_no_comment(github: GitHub) -> None:
    """A run that failed before its comparison leaves an artifact without the file."""
    github.comment(CHEAPER)
    github.leave({"other.json": b"{}"})
    assert "left no comparison" in github.renew().stdout
    assert "left no comparison" in github.renew(github.state / "nowhere").stdout
    assert github.comments[1] == markdown(CHEAPER)


def _damaged_archives() -> dict[str, bytes]:
    sound = io.BytesIO()
    with zipfile.ZipFile(sound, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("comment.json", write_comment(CHEAPER))
    return {
        "too large": bytes(MOST_BYTES + 1),
        "no archive": bytes(100),
        "damaged": sound.getvalue().replace(b"format_version", b"format-version", 1)[:-3],
        "of a damaged method": sound.getvalue().replace(b"\x5d\0\0", b"\xff\0\0"),
    }


_ARCHIVES = _damaged_archives()


@pytest.mark.parametrize("archive", _ARCHIVES.values(), ids=_ARCHIVES)
def test_a_damaged_archive_changes_no_comment(github: GitHub, archive: bytes) -> None:
    """An archive that compare.py cannot have written is a one-line error."""
    github.comment(CHEAPER)
    (github.state / "comment.zip").write_bytes(archive)
    process = github.renew()
    assert process.returncode == 1
    assert "expected an archive" in process.stderr
    assert github.comments[1] == markdown(CHEAPER)


_FORBIDDEN = "Resource not accessible by integration (HTTP 403)"


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_token_that_may_not_comment_fails_nothing(github: GitHub, method: str) -> None:
    """For a fork's request one line links to the summary with the text."""
    file = github.state / "comment.json"
    file.write_bytes(write_comment(CHEAPER))
    github.refuse(method, _FORBIDDEN)
    process = github.renew(file)
    assert (process.returncode, process.stderr) == (0, "")
    assert _FORBIDDEN in process.stdout
    assert "the summary of the job that compared has it" in process.stdout


def test_a_later_push_keeps_an_older_run_from_commenting(github: GitHub) -> None:
    """A run of an outdated commit does not comment."""
    assert "nothing to comment" in github.comment(CHEAPER, HEAD_SHA="older")
    assert len(github.comments) == 1


def test_an_html_block_hides_no_fence(github: GitHub) -> None:
    """A forged fold end followed by a fence, which Markdown treats as HTML."""
    forged = "</details>\n```\n[click](https://example.org) <img src=x> @everyone\n```"
    parts = {"winners": Part(((forged,),)), "faults": Part(tuple((f,) for f in forged.split("\n")))}
    github.comment(Comment("check", forged, forged, forged, parts))
    assert shown(github.comments[1]).live == []


def test_the_trusted_side_has_all_that_its_script_imports(tmp_path: Path, github: GitHub) -> None:
    """The folders that the workflow checks out contain the script's module."""
    text = (ROOT / ".github/workflows/comment.yml").read_text("utf-8")
    (block,) = re.findall(r"sparse-checkout: \|\n((?: {12}\S+\n)+)", text)
    git(tmp_path, "clone", "--quiet", "--no-checkout", str(ROOT), "base")
    git(tmp_path / "base", "sparse-checkout", "set", *block.split())
    git(tmp_path / "base", "checkout", "--quiet")
    assert not (tmp_path / "base/runner/epochcost/specs").exists()
    github.leave({"comment.json": write_comment(CHEAPER)})
    script = tmp_path / "base/.github/scripts/comment.py"
    process = subprocess.run(
        [sys.executable, script],
        cwd=tmp_path, env=github.environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    assert "commented" in process.stdout
    assert git(tmp_path / "base", "status", "--porcelain", "--ignored") == ""


def _clone(folder: Path) -> Path:
    git(folder, "init", "--quiet", "--bare", "--initial-branch=main", "remote.git")
    git(folder, "clone", "--quiet", "remote.git", "clone")
    clone = folder / "clone"
    (clone / "README.md").write_text("costs\n", "utf-8")
    commit(clone)
    git(clone, "push", "--quiet", "origin", "HEAD:main")
    return clone


def test_results_of_a_run_are_proposed_on_a_branch(github: GitHub, tmp_path: Path) -> None:
    """Results, ceilings and limits keep their folders; other files and machines are excluded."""
    clone = _clone(tmp_path)
    names = ("box/one.json", "box/ceilings/cpu.json", "box/limits/two.json")
    others = ("other/three.json", "box/page/four.json", "five.json", "box/run.log")
    for name in (*names, *others):
        path = github.state / "results" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}", "utf-8")
    subprocess.run([SCRIPTS / "propose.sh"], cwd=clone, env=github.environment, check=True)
    files = git(tmp_path / "remote.git", "ls-tree", "-r", "--name-only", "results-box-12")
    assert set(files.split()) == {"README.md", *(f"docs/data/results/{name}" for name in names)}
    assert '"pr", "create"' in (github.state / "calls.txt").read_text("utf-8")


@pytest.mark.parametrize("script", ["measure.sh", "propose.sh"])
def test_a_machine_that_is_no_id_is_refused(github: GitHub, script: str) -> None:
    """A path as machine name never reaches the file system."""
    environment = github.environment | {"HARDWARE": "../elsewhere"}
    process = subprocess.run(
        [SCRIPTS / script, "results"], env=environment, capture_output=True, text=True, check=False
    )
    assert process.returncode == 2
    assert "expected a machine's id" in process.stderr


@pytest.mark.parametrize("published", ["site", "push", "nowhere"])
def test_changes_count_from_what_was_published_last(tmp_path: Path, published: str) -> None:
    """The site's commit, else the one before the push; unknown commits are ignored."""
    clone, site = _clone(tmp_path), tmp_path / "site"
    revision = git(clone, "rev-parse", "HEAD")
    (site / "data").mkdir(parents=True)
    if published == "site":
        (site / "data/publication.json").write_text(json.dumps({"revision": revision}), "utf-8")
    epochcost = tmp_path / "epochcost"
    epochcost.write_text('#!/bin/sh\necho "$1 ${EPOCHCOST_PUBLISHED:-unknown}"\n', "utf-8")
    epochcost.chmod(0o755)
    publication = {
        "EPOCHCOST": str(epochcost),
        "EPOCHCOST_SITE_URL": f"{site.as_uri()}/",
        "EPOCHCOST_PUBLISHED": revision if published == "push" else "0" * 40,
    }
    command = [SCRIPTS / "publish.sh", "built"]
    process = subprocess.run(
        command,
        cwd=clone,
        env={**os.environ, **publication},
        capture_output=True,
        text=True,
        check=True,
    )
    expected = "unknown" if published == "nowhere" else revision
    assert f"build {expected}" in process.stdout.splitlines()


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_action_is_pinned_by_its_hash(path: Path) -> None:
    """A tag can be moved to other code; a hash cannot."""
    used = re.findall(r"uses: (\S+)", path.read_text("utf-8"))
    assert used
    assert [
        action for action in used if not re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", action)
    ] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_no_workflow_runs_a_request_with_secrets(path: Path) -> None:
    """Jobs have read permission only, and no trigger runs a fork's code with our token."""
    text = path.read_text("utf-8")
    assert "pull_request_target" not in text
    assert "secrets." not in text
    assert re.search(r"^permissions:(?: \{\}|\n  contents: read)\n(?!  )", text, re.M)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_step_runs_a_file_or_a_target_that_exists(path: Path) -> None:
    """Workflows run scripts of the repository and make targets."""
    targets = (ROOT / "Makefile").read_text("utf-8")
    for line in re.findall(r"^\s+(?:- )?run: (.+)$", path.read_text("utf-8"), re.M):
        parts = [word for word in line.split() if word != "python3"]
        if parts[0] == "make":
            assert f"\n{parts[1]}:" in targets
        else:
            assert os.access(ROOT / parts[0], os.X_OK) or parts[0].endswith(".py"), line
            assert (ROOT / parts[0]).is_file(), line


def test_bash_reads_every_script() -> None:
    """All scripts have valid syntax."""
    bash = shutil.which("bash")
    assert bash
    for script in SCRIPTS.glob("*.sh"):
        subprocess.run([bash, "-n", script], check=True)
