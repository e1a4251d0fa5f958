"""The digest of what the report is made from changes with every class of it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from epochcost.report.keeping import origin as keeping
from epochcost.report.keeping.origin import origin
from epochcost.report.sources import Sources

_FILES = (
    "specs/prices/a.toml",
    "specs/prices/list.csv",
    "models/a.onnx",
    "CHANGELOG.md",
    "docs/data/step-ratio.json",
    "docs/data/results/a/1.json",
    "more/a/1.json",
    "site_templates/pages/a.md.jinja",
    "site_templates/assets/a.css",
)


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
    seen = [origin(sources)]
    _write(path, "first")
    assert origin(sources) == seen[0]
    _write(path, "other")
    seen.append(origin(sources))
    path.rename(path.with_name(f"another-{path.name}"))
    seen.append(origin(sources))
    _write(sources.cache / "linked", "first")
    path.symlink_to(sources.cache / "linked")
    seen.append(origin(sources))
    assert len({*seen}) == len(seen)


def test_a_file_below_a_linked_folder_is_part_of_it(sources: Sources, tmp_path: Path) -> None:
    """Even where the link leads back to a folder above itself."""
    _write(tmp_path / "apart/b.toml", "first")
    (sources.project / "specs/apart").symlink_to(tmp_path / "apart")
    (tmp_path / "apart/round").symlink_to(sources.project / "specs")
    before = origin(sources)
    _write(tmp_path / "apart/b.toml", "other")
    assert origin(sources) != before


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
    seen = [origin(change(sources)) for change in changed]
    assert len({*seen}) == len(seen)


def test_what_git_says_is_part_of_it(sources: Sources) -> None:
    """A first commit, a second of the same files, and a result that was replaced and put back."""

    def said(*arguments: str) -> None:
        names = ("-c", "user.name=a", "-c", "user.email=a@b.invalid")
        subprocess.run(["git", *names, *arguments], cwd=sources.project, check=True)

    dated = replace(sources, published="published")
    seen = [origin(sources), origin(dated)]
    said("init", "--quiet")
    seen += [origin(sources), origin(dated)]
    said("add", ".")
    said("commit", "--quiet", "--message", "first")
    seen += [origin(sources), origin(dated)]
    said("tag", "published")
    seen.append(origin(dated))
    _write(sources.project / "more/a/1.json", "other")
    said("commit", "--quiet", "--all", "--message", "second")
    _write(sources.project / "more/a/1.json", "first")
    seen += [origin(sources), origin(dated)]
    said("tag", "--force", "published")
    seen.append(origin(dated))
    _write(sources.project / ".gitignore", "specs/prices/list.csv\n")
    said("rm", "--quiet", "--cached", "specs/prices/list.csv")
    seen.append(origin(dated))
    assert len({*seen}) == len(seen)


@pytest.mark.parametrize("name", ["packages", "_file"])
def test_the_program_is_part_of_it(
    sources: Sources, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Another version of a package, or other code."""
    keeping.program.cache_clear()
    before = keeping.program()
    monkeypatch.setattr(keeping, name, lambda *_: ["another-1.0.dist-info"])
    keeping.program.cache_clear()
    after, whole = keeping.program(), origin(sources)
    monkeypatch.undo()
    keeping.program.cache_clear()
    assert after != before
    assert keeping.program() == before
    assert origin(sources) != whole
