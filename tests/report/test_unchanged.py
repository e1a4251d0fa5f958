"""The digest of all that a site follows from changes with every class of it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mkdocs.config import load_config

from epochcost.analysis.inputs import Sources
from epochcost.report import unchanged
from epochcost.report.unchanged import BuildStamp, configuration, inputs_digest
from report_project import REPOSITORY

_FILES = (
    "specs/prices/a.toml",
    "specs/prices/list.csv",
    "models/a.onnx",
    "CHANGELOG.md",
    "docs/data/step-ratio.json",
    "docs/page.md",
    "docs/data/results/a/1.json",
    "more/a/1.json",
    "site_templates/pages/a.md.jinja",
    "site_templates/assets/a.css",
    "theme/main.html",
)


def digest(sources: Sources, options: str = "") -> str:
    """What a build reads, with a theme of the project's own."""
    return inputs_digest(sources, [str(sources.project / "theme")], options)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


@pytest.fixture(name="sources")
def sources_fixture(tmp_path: Path) -> Sources:
    """A project with a file of each kind that is read."""
    project = tmp_path / "project"
    for name in _FILES:
        _write(project / name, "first")
    results = (project / "docs/data/results", project / "more")
    cache = tmp_path / "cache"
    return Sources(project, results, project / "docs", project / "site_templates", "", cache)


@pytest.mark.parametrize("name", _FILES)
def test_a_file_that_is_read_is_part_of_it(sources: Sources, name: str) -> None:
    """Its content, its absence, another beside it, and a link in its place; not its date."""
    path = sources.project / name
    seen = [digest(sources)]
    _write(path, "first")
    assert digest(sources) == seen[0]
    _write(path, "other")
    seen.append(digest(sources))
    path.rename(path.with_name(f"another-{path.name}"))
    seen.append(digest(sources))
    _write(sources.cache / "linked", "first")
    path.symlink_to(sources.cache / "linked")
    seen.append(digest(sources))
    assert len({*seen}) == len(seen)


def test_a_file_below_a_linked_folder_is_part_of_it(sources: Sources, tmp_path: Path) -> None:
    """Even where the link leads back to a folder above itself."""
    _write(tmp_path / "apart/b.toml", "first")
    (sources.project / "specs/apart").symlink_to(tmp_path / "apart")
    (tmp_path / "apart/round").symlink_to(sources.project / "specs")
    before = digest(sources)
    _write(tmp_path / "apart/b.toml", "other")
    assert digest(sources) != before


def test_where_things_stand_and_what_was_published_is_part_of_it(
    sources: Sources, tmp_path: Path
) -> None:
    """Paths are named in complaints; the page of changes counts from what was published."""
    changed: list[Callable[[Sources], Sources]] = [
        lambda one: one,
        lambda one: replace(one, published="v1"),
        lambda one: replace(one, results=one.results[:1]),
        lambda one: replace(one, results=one.results[::-1]),
        lambda one: replace(one, docs=tmp_path),
        lambda one: replace(one, templates=tmp_path),
        lambda one: replace(one, project=tmp_path),
    ]
    seen = [digest(change(sources)) for change in changed]
    seen.append(digest(sources, "other options"))
    assert len({*seen}) == len(seen)


def test_the_day_is_part_of_it(sources: Sources, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tomorrow prices are a day older."""
    before = digest(sources)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "4000000000")
    assert digest(sources) != before


def test_what_git_says_is_part_of_it(sources: Sources) -> None:
    """A first commit, a second of the same files, and a result that was replaced and put back."""

    def said(*arguments: str) -> None:
        names = ("-c", "user.name=a", "-c", "user.email=a@b.invalid")
        subprocess.run(["git", *names, *arguments], cwd=sources.project, check=True)

    dated = replace(sources, published="published")
    seen = [digest(sources), digest(dated)]
    said("init", "--quiet")
    seen += [digest(sources), digest(dated)]
    said("add", ".")
    said("commit", "--quiet", "--message", "first")
    seen += [digest(sources), digest(dated)]
    said("tag", "published")
    seen.append(digest(dated))
    _write(sources.project / "more/a/1.json", "other")
    said("commit", "--quiet", "--all", "--message", "second")
    _write(sources.project / "more/a/1.json", "first")
    seen += [digest(sources), digest(dated)]
    said("tag", "--force", "published")
    seen.append(digest(dated))
    _write(sources.project / ".gitignore", "specs/prices/list.csv\n")
    said("rm", "--quiet", "--cached", "specs/prices/list.csv")
    seen.append(digest(dated))
    assert len({*seen}) == len(seen)


@pytest.mark.parametrize("name", ["_packages", "_file"])
def test_the_program_is_part_of_it(
    sources: Sources, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Another version of a package, or other code."""
    before = digest(sources)
    monkeypatch.setattr(unchanged, name, lambda *_: ["another-1.0.dist-info"])
    assert digest(sources) != before
    monkeypatch.undo()
    assert digest(sources) == before


def test_the_configuration_is_said_in_words() -> None:
    """The same each time, another with any option, and none with what reads other files."""

    def said(**options: Any) -> str | None:
        return configuration(load_config(str(REPOSITORY / "mkdocs.yml"), **options))

    assert said() == said()
    theme = {"name": "material", "language": "de"}
    seen = [said(), said(strict=True), said(site_dir="other"), said(theme=theme)]
    assert len({*seen}) == len(seen)
    assert None not in seen
    assert said(markdown_extensions=["pymdownx.snippets"]) is None
    assert said(plugins=["search", "epochcost", "tags"]) is None
    assert said(hooks=["benchmarks/made_trials.py"]) is None


def test_a_stamp_is_good_for_the_site_as_it_was_left(tmp_path: Path) -> None:
    """For one digest and one folder, until a file of it is edited or missing."""
    site = tmp_path / "site"
    _write(site / "a/index.html", "first")
    stamp = BuildStamp.of(tmp_path / "cache", site)
    assert not stamp.matches("digest")
    stamp.write("digest")
    assert stamp.matches("digest")
    assert not stamp.matches("another")
    assert not BuildStamp.of(tmp_path / "cache", tmp_path).matches("digest")
    _write(site / "a/index.html", "edited")
    assert not stamp.matches("digest")
    stamp.write("digest")
    (site / "a/index.html").unlink()
    assert not stamp.matches("digest")
    stamp.path.write_text("[", encoding="utf-8")
    assert not stamp.matches("digest")
