"""The page of changes since the last publication."""

from __future__ import annotations

import html
import json
import re
import subprocess
from pathlib import Path

import pytest

from epochcost.analysis.difference.changes import Difference, publication
from epochcost.analysis.difference.revision import earlier_revision
from epochcost.report.pages.page import Report
from epochcost.report.site import build
from report_project import REPOSITORY, inputs_of, write_project


def git(folder: Path, *arguments: str) -> str:
    """Run git with a test identity."""
    who = ("-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false")
    process = subprocess.run(
        ["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True
    )
    return process.stdout.strip()


def test_a_new_price_stands_among_the_changes(tmp_path: Path) -> None:
    """After a price rose, the page has both amounts, and the site's file has the commit."""
    project = write_project(tmp_path)
    git(project, "init", "-q")
    git(project, "add", "specs", "docs/data")
    git(project, "commit", "-qm", "published")
    commit = git(project, "rev-parse", "HEAD")
    price = project / "specs/prices/box-2026.toml"
    price.write_text(price.read_text(encoding="utf-8").replace("0.80", "1.20"), encoding="utf-8")
    changes = publication(project, commit)
    assert json.loads(changes.file()) == {"revision": commit}
    page = build(inputs_of(project), REPOSITORY / "site_templates", changes).pages["changed.md"]
    text = html.unescape(page)
    assert "amount 0.8 → 1.2" in text
    assert "+50.0 %" in text
    assert f"({commit[:8]})" in text.replace("<code>", "").replace("</code>", "")
    assert re.search(r"Since \d{4}-\d\d-\d\d", text.replace("\\", ""))


def test_equal_files_are_not_priced_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a changed file there is no change; a result that git ignores is a change."""
    project = write_project(tmp_path)
    (ignored,) = (
        path for path in project.rglob("docs/data/results/*/*.json") if "b128" in path.name
    )
    text = ignored.read_text("utf-8")
    ignored.unlink()
    git(project, "init", "-q")
    (project / ".gitignore").write_text(f"{ignored.name}\n", "utf-8")
    git(project, "add", ".gitignore", "specs", "models", "docs/data")
    git(project, "commit", "-qm", "published")
    commit = git(project, "rev-parse", "HEAD")
    ignored.write_text(text, "utf-8")
    added = Report(inputs_of(project), publication(project, commit)).changes
    assert isinstance(added, Difference)
    assert not added.is_empty
    ignored.unlink()
    monkeypatch.setattr("epochcost.analysis.difference.changes.read_revision", None)
    same = Report(inputs_of(project), publication(project, commit)).changes
    assert isinstance(same, Difference)
    assert same.is_empty


def test_without_a_word_it_is_the_last_tag_or_the_parent(tmp_path: Path) -> None:
    """The earlier revision is the last tag before the commit, or else the parent commit."""
    project = write_project(tmp_path)
    assert earlier_revision(project) == ""
    git(project, "init", "-q")
    git(project, "add", "specs")
    git(project, "commit", "-qm", "first")
    assert earlier_revision(project) == ""
    first = git(project, "rev-parse", "HEAD")
    git(project, "commit", "-q", "--allow-empty", "-m", "second")
    assert earlier_revision(project) == first
    git(project, "tag", "v1")
    assert earlier_revision(project) == first
    git(project, "commit", "-q", "--allow-empty", "-m", "third")
    git(project, "commit", "-q", "--allow-empty", "-m", "fourth")
    assert earlier_revision(project) == "v1"
    changes = Report(inputs_of(project), publication(project, "v1")).changes
    assert isinstance(changes, Difference)
    assert changes.before.startswith("v1 (")


def test_without_an_earlier_commit_the_page_says_what_to_do(tmp_path: Path) -> None:
    """Without an earlier revision the build succeeds, and the page gives the reason."""
    project = write_project(tmp_path)
    nowhere = publication(project, "")
    assert isinstance(Report(inputs_of(project), nowhere).changes, str)
    page = build(inputs_of(project), REPOSITORY / "site_templates").pages["changed.md"]
    assert "EPOCHCOST_PUBLISHED" in html.unescape(page)
    git(project, "init", "-q")
    git(project, "add", "specs")
    git(project, "commit", "-qm", "first")
    gone = publication(project, "0" * 40)
    assert "expected a commit" in str(Report(inputs_of(project), gone).changes)
