"""Replaced results, read from git: none lost, none twice, and what is not there is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochcost.analysis import repository
from epochcost.analysis.history import histories
from epochcost.analysis.repository import Past, past_results
from epochcost.report.pages import changes
from epochcost.report.pages.page import Report
from report_project import inputs_of, make_result, store_results, write_project
from revisions import commit, git

STEADY = (0.0100, 0.0101) * 30
SLOWER = (0.0150, 0.0151) * 30
SLOWEST = (0.0200, 0.0201) * 30


def results_of(project: Path) -> Path:
    """The folder that is asked about."""
    return project / "docs/data/results"


@pytest.fixture(scope="module", name="replaced")
def replaced_fixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trial committed, measured again and committed, and once more without a commit."""
    folder = write_project(
        tmp_path_factory.mktemp("past"), [make_result(day=1, samples=STEADY, rounds=3)]
    )
    git(folder, "init", "--quiet", "--initial-branch", "main")
    commit(folder)
    store_results(folder, [make_result(day=2, samples=SLOWER, rounds=3)])
    commit(folder)
    store_results(folder, [make_result(day=3, samples=SLOWEST, rounds=3)])
    return folder


def read(project: Path, cache: Path | None = None) -> Past:
    """What git has of the project's results."""
    return past_results([results_of(project)], cache)


def test_replaced_results_come_from_commits_and_from_what_is_not_committed(replaced: Path) -> None:
    """The newest first; what stands in the folder is none of them."""
    found = read(replaced)
    assert [one.started_at.day for one in found.results] == [2, 1]
    assert [round(one.mean, 5) for one in found.results] == [0.01505, 0.01005]
    assert found.left_out == ()


def test_a_figure_has_its_replaced_measurements(replaced: Path) -> None:
    """Three points of one work; what was replaced names the command that shows it."""
    (series,) = histories(inputs_of(replaced), read(replaced).results)
    assert [point.at.day for point in series.points] == [1, 2, 3]
    assert [bool(point.evidence.uri) for point in series.points] == [False, False, True]
    assert len(series.steps) == 2
    shown = series.points[0].evidence.label.split()
    assert git(replaced, *shown[1:]).startswith("{")


def test_the_page_shows_them(replaced: Path) -> None:
    """The host's figure is drawn from what no file holds any more."""
    _, page, *_ = changes.pages(Report(inputs_of(replaced)))
    (host,) = page.context["hosts"]
    assert host.figure is not None
    assert len(page.context["past"].results) == 2


def test_a_removed_result_and_one_that_came_back(replaced: Path, tmp_path: Path) -> None:
    """A deleted file's work lives on; one whose content is back counts once."""
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", str(replaced), str(clone))
    (stored,) = results_of(clone).glob("*/*.json")
    data = stored.read_bytes()
    stored.unlink()
    commit(clone)
    (series,) = histories(inputs_of(clone), read(clone).results)
    assert [point.at.day for point in series.points] == [1, 2]
    stored.parent.mkdir(exist_ok=True)
    stored.write_bytes(data)
    (series,) = histories(inputs_of(clone), read(clone).results)
    assert [bool(point.evidence.uri) for point in series.points] == [False, True]


def test_a_build_reads_each_content_once(
    replaced: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was summarised by the same code is kept by the blob's id; a damaged cache is none."""
    cache = tmp_path / "cache"
    first = read(replaced, cache)
    with monkeypatch.context() as patched:
        patched.setattr(repository, "parse_result", None)
        assert read(replaced, cache) == first
    (kept,) = cache.iterdir()
    kept.write_bytes(b"{")
    assert read(replaced, cache) == first


def test_a_shallow_clone_says_so(replaced: Path, tmp_path: Path) -> None:
    """It has one commit, before which nothing is known."""
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{replaced}", str(clone))
    found = read(clone)
    assert found.results == ()
    assert "shallow clone" in found.left_out[0]


def test_content_that_a_clone_lacks_is_counted(replaced: Path, tmp_path: Path) -> None:
    """A partial clone is not made to fetch."""
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", "--no-hardlinks", str(replaced), str(clone))
    gone = git(clone, "rev-parse", "HEAD~1:docs/data/results/local")
    (blob,) = (line.split()[2] for line in git(clone, "ls-tree", gone).splitlines())
    path = clone / ".git/objects" / blob[:2] / blob[2:]
    path.chmod(0o600)
    path.unlink()
    found = read(clone)
    assert found.results == ()
    assert found.left_out == ("Of 1 replaced results this clone has no content.",)


def test_without_a_repository_or_git_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page then has what stands side by side."""
    folder = write_project(tmp_path / "plain", [make_result()])
    found = read(folder)
    assert found.results == ()
    assert "not shown: results: expected a git repository" in found.left_out[0]
    monkeypatch.setattr(repository.subprocess, "run", _no_program)
    assert "found no such program" in read(folder).left_out[0]
    assert past_results([tmp_path / "none"]) == Past()


def _no_program(*_: object, **__: object) -> None:
    raise FileNotFoundError("git")


def test_what_is_no_result_is_left_out(replaced: Path, tmp_path: Path) -> None:
    """A damaged file that was replaced is no point, and no error."""
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", str(replaced), str(clone))
    damaged = results_of(clone) / "local/damaged.json"
    damaged.write_bytes(b"{")
    commit(clone)
    damaged.unlink()
    commit(clone)
    assert len(read(clone).results) == 1


def test_the_newest_are_read_where_there_are_too_many(
    replaced: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cost of a history is bounded."""
    monkeypatch.setattr(repository, "MOST_REVISIONS", 1)
    found = read(replaced)
    assert [one.started_at.day for one in found.results] == [2]
    assert found.left_out == ("Of 2 replaced results, the newest 1 are read.",)
