"""A pull request that changes one price, from the branch to the published page."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from epochcost.cli.request_comment import MARKER, markdown, read_comment
from fake_github import write_program
from report_project import write_project
from revisions import commit, git, write_spec
from shared_builds import SharedBuilds
from shown_comment import shown

SCRIPTS = Path(__file__).parents[2] / ".github/scripts"
# The project's price: an hour of `box` costs 0.80 dollars on demand since July.
_NEWER = """
id = "box-2026-11"
hardware = "box"
plan = "on-demand"
provider = "Cloud"
region = "east"
amount = {amount}
source = "https://example.org/prices"
as_of = 2026-11-20
"""
_BUDGET = """
id = "brief"
name = "Brief"
models = ["net"]
hardware = ["box"]
[budget]
limits = [{ model = "net", goal = "epoch", at_most = 0.005 }]
"""


class Clone:
    """A contributor's clone of the project, with a bare remote as origin."""

    def __init__(self, folder: Path, shared: SharedBuilds) -> None:
        self.folder = shared.into(write_project(folder / "clone"))
        self.summary = folder / "summary.md"
        # Synthetic results, which the check of results refuses.
        shutil.rmtree(self.folder / "docs/data/results")
        self.git("init", "--quiet", "--bare", "--initial-branch=main", str(folder / "remote.git"))
        self.git("init", "--quiet", "--initial-branch=main")
        (self.folder / ".gitignore").write_text("site/\n.cache/\ncomment/\n", "utf-8")
        commit(self.folder)
        self.git("remote", "add", "origin", str(folder / "remote.git"))
        self.git("push", "--quiet", "--set-upstream", "origin", "main")

    def git(self, *arguments: str) -> str:
        """Output of git in the clone."""
        return git(self.folder, *arguments)

    def script(self, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a workflow's script like its workflow."""
        program = write_program(self.folder.parent / "epochcost")
        chosen = {"EPOCHCOST": program, "NO_MKDOCS_2_WARNING": "1"}
        environment = {**os.environ, **chosen, "GITHUB_STEP_SUMMARY": str(self.summary)}
        command = [str(SCRIPTS / name), *arguments]
        return subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )

    @property
    def comment(self) -> str:
        """The comparison's text for the pull request."""
        return markdown(read_comment((self.folder / "comment/comment.json").read_bytes()))


@pytest.fixture(name="clone")
def clone_fixture(tmp_path: Path, shared: SharedBuilds) -> Clone:
    """A clone whose main branch is pushed."""
    return Clone(tmp_path, shared)


def add_price(clone: Clone, amount: str) -> None:
    """Add the newer price on a branch."""
    clone.git("switch", "--quiet", "--create", "cheaper")
    path = clone.folder / "specs/prices/box-2026-11.toml"
    path.write_text(_NEWER.format(amount=amount), "utf-8")
    commit(clone.folder)


def test_one_price_goes_from_a_branch_to_the_published_site(
    clone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The comment has the changed rows and amounts; the site has the new price and the old one."""
    before = clone.git("rev-parse", "HEAD")
    add_price(clone, "0.60")
    compared = clone.script("compare.py", "main", "comment")
    assert compared.returncode == 0, compared.stdout + compared.stderr
    text = clone.comment
    assert text.startswith(MARKER)
    assert clone.summary.read_text("utf-8") == text
    rows = [line for line in text.splitlines() if line.startswith("|") and "box" in line]
    assert rows
    assert all("(-25.0 %)" in row and "box-2026-11" in row for row in rows), text
    clone.git("switch", "--quiet", "main")
    clone.git("merge", "--quiet", "--no-ff", "--message", "Merge", "cheaper")
    clone.git("push", "--quiet", "origin", "main")
    monkeypatch.setenv("EPOCHCOST_PUBLISHED", before)
    published = clone.script("publish.sh", "site")
    assert published.returncode == 0, published.stdout + published.stderr
    page = (clone.folder / "site/prices.html").read_text("utf-8")
    assert "2026-11-20" in page
    assert "2026-07-01" in page
    changed = (clone.folder / "site/changed.html").read_text("utf-8")
    assert f"(<code>{before[:8]}</code>)" in changed
    assert "amount 0.8 → 0.6, " in changed
    publication = json.loads((clone.folder / "site/data/publication.json").read_text("utf-8"))
    assert publication == {"revision": clone.git("rev-parse", "HEAD")}
    assert clone.git("status", "--porcelain") == ""


def test_a_request_with_a_fault_is_told_where_it_is(clone: Clone) -> None:
    """The comment names file, line and expectation, and the check fails."""
    add_price(clone, '"cheap"')
    compared = clone.script("compare.py", "main", "comment")
    assert compared.returncode == 1
    assert clone.comment.startswith(MARKER)
    assert "specs/prices/box-2026-11.toml:7:" in clone.comment
    assert "found faults" in clone.comment
    assert clone.summary.read_text("utf-8") == clone.comment


def test_a_budget_that_is_not_kept_is_told_beside_the_changes(clone: Clone) -> None:
    """The check fails; the comment has the budget's line and the changed costs."""
    add_price(clone, "0.96")
    write_spec(clone.folder, "studies/brief", _BUDGET)
    compared = clone.script("compare.py", "main", "comment")
    assert compared.returncode == 1
    assert "**epochcost check --budgets found limits that are not kept:**" in clone.comment
    assert "What this changes in cost" in clone.comment


def test_a_request_with_a_result_that_is_none(clone: Clone) -> None:
    """An implausible result fails the check, and the comment says why."""
    clone.git("switch", "--quiet", "--create", "result")
    path = clone.folder / "docs/data/results/box/fast```.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"format_version": NaN}', "utf-8")
    commit(clone.folder)
    compared = clone.script("compare.py", "main", "comment")
    assert compared.returncode == 1
    expected = (
        "docs/data/results/box/fast'''.json:1:1: format_version: Input should be a valid integer"
    )
    comment = shown(clone.comment)
    assert comment.codes.count(expected) == 1
    assert comment.live == []
