"""Repeated builds of a site: only changed charts are drawn again.

Also: no build publishes foreign files, or continues after it was killed.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from crowding import crowded
from heeded_signals import heeded_signals
from report_project import make_result, results_of_rented_machines, write_project
from shared_builds import SharedBuilds

_COMMAND = [sys.executable, "-c", "from epochcost.cli.app import main; main()"]
_WAIT_SECONDS = 120


@dataclass(frozen=True)
class Built:
    """A site's files, and the build's output."""

    files: Mapping[str, bytes]
    output: str

    @property
    def warnings(self) -> list[str]:
        """The build's warnings."""
        return [line for line in self.output.splitlines() if line.startswith("WARNING")]


def build(folder: Path, *options: str) -> Built:
    """Build the site of a project as a user does."""
    command = [*_COMMAND, "build", *options]
    process = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    return Built(files_of(folder), process.stderr)


def small(folder: Path, shared: SharedBuilds) -> Path:
    """A project with one result and shared drawings."""
    return shared.into(write_project(folder / "project", [make_result()]))


@pytest.fixture(scope="module", name="original")
def original_fixture(tmp_path_factory: pytest.TempPathFactory, shared: SharedBuilds) -> Path:
    """A project whose site is built: a price of ``box`` is in its charts of training alone."""
    folder = tmp_path_factory.mktemp("built") / "project"
    shared.into(write_project(folder, results_of_rented_machines()))
    build(folder)
    return folder


@pytest.fixture(name="copy")
def copy_fixture(original: Path, tmp_path: Path) -> Path:
    """A copy of the built project for changes."""
    return shutil.copytree(original, tmp_path / "project", symlinks=True)


def files_of(folder: Path) -> dict[str, bytes]:
    """The files of the project's site."""
    site = folder / "site"
    return {
        path.relative_to(site).as_posix(): path.read_bytes()
        for path in sorted(site.rglob("*"))
        if path.is_file()
    }


def test_an_edited_price_draws_only_the_charts_again_that_change(copy: Path) -> None:
    """A chart whose data changed is drawn; all other drawings, and the library's script, stay."""
    folder, former = copy, files_of(copy)
    price = folder / "specs/prices/box-2026.toml"
    price.write_text(price.read_text(encoding="utf-8").replace("0.80", "0.96"), encoding="utf-8")
    drawings = folder / ".cache/epochcost/charts/drawings"
    drawn = {path.name: path.stat().st_mtime_ns for path in drawings.iterdir()}
    changed = build(folder)
    assert changed.files["prices.html"] != former["prices.html"]
    now = {path.name: path.stat().st_mtime_ns for path in drawings.iterdir()}
    tables = {
        name for name in former if name.startswith("data/figures/") and name.endswith(".json")
    }
    unchanged = {name for name in tables if changed.files[name] == former[name]}
    assert 0 < len(unchanged) < len(tables)
    assert drawn.items() <= now.items()
    assert len(now) - len(drawn) == len(tables) - len(unchanged)


@pytest.mark.slow
def test_a_build_with_drawings_is_the_same_as_one_from_nothing(copy: Path) -> None:
    """Byte for byte."""
    changed = build(copy)
    shutil.rmtree(copy / ".cache")
    shutil.rmtree(copy / "site")
    assert build(copy).files == changed.files


def test_what_a_build_warned_of_the_next_one_warns_of(tmp_path: Path, shared: SharedBuilds) -> None:
    """Dead links in Markdown, and in templates' HTML."""
    folder = small(tmp_path, shared)
    (folder / "docs/linking.md").write_text(
        "# Linking\n\n[nowhere](nowhere.md), [there](prices.md#none-such)\n", encoding="utf-8"
    )
    page = folder / "site_templates/pages/data.md.jinja"
    link = '<p><a href="site:no-such.md">no</a> <a href="site:prices.md">yes</a></p>'
    text = page.read_text(encoding="utf-8").replace("## Licence", f"{link}\n\n## Licence")
    page.write_text(text, encoding="utf-8")
    first = build(folder)
    assert len(first.warnings) == 3
    for phrase in ("nowhere.md", "none-such", "data.md: a link leads to no-such.md: no such file"):
        assert phrase in " ".join(first.warnings)
    assert b'<a href="no-such.md">no</a> <a href="prices.html">yes</a>' in first.files["data.html"]
    again = build(folder)
    assert (again.files, again.warnings) == (first.files, first.warnings)


@pytest.fixture(name="foreign")
def foreign_fixture(tmp_path: Path, shared: SharedBuilds) -> Path:
    """A project whose docs have foreign files and one link of each kind."""
    folder = small(tmp_path, shared)
    results = folder / "docs/data/results/local"
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "secret.json").write_text('"secret"', encoding="utf-8")
    (secret / "secret.md").write_text("# Secret", encoding="utf-8")
    for path in (results / "evil.html", folder / "docs/evil.html", folder / "docs/evil.svg"):
        path.write_text("<script>window.hacked=1</script>", encoding="utf-8")
    (results / "passwd.json").symlink_to(secret / "secret.json")
    (folder / "docs/passwd.md").symlink_to(secret / "secret.md")
    (folder / "docs/linked").symlink_to(secret)
    (folder / "docs/around").symlink_to(folder / "docs")
    (folder / "docs/dangling.md").symlink_to(tmp_path / "no-such.md")
    (results / "dangling.png").symlink_to(tmp_path / "no-such.png")
    return folder


def test_only_what_belongs_is_published(foreign: Path) -> None:
    """Foreign files are named, and omitted from the site and its Markdown pages."""
    built = build(foreign)
    for phrase in ("evil", "secret", "passwd", "linked", "around", "dangling"):
        assert not [name for name in built.files if phrase in name], phrase
    for phrase in ("evil.html", "evil.svg", "passwd.md", "docs/linked", "around", "dangling.md"):
        assert any(phrase in line for line in built.warnings), phrase
    assert "Traceback" not in built.output
    assert b"Secret" not in built.files["search/search_index.json"]
    build(foreign, "--pages-to", "../pages")
    written = [path.name for path in (foreign.parent / "pages").rglob("*")]
    assert not {"evil.html", "linked", "secret.json", "passwd.json"}.intersection(written)
    assert "prices.md" in written


def test_links_are_refused_where_nothing_may_be_wrong(foreign: Path) -> None:
    """A strict build and `check` refuse each link by its path, in one line."""
    for options in (("build", "--strict"), ("check",)):
        process = subprocess.run(
            [*_COMMAND, *options], cwd=foreign, capture_output=True, text=True, check=False
        )
        assert process.returncode == 1, options
        output = process.stdout + process.stderr
        assert "Traceback" not in output
        for name in ("passwd.json", "passwd.md", "linked", "around", "dangling.md"):
            assert f"{name}:1:1: expected a file or folder, got a link" in output, name


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["kill -9", "Ctrl-C"])
def test_nothing_goes_on_when_a_build_was_ended(tmp_path: Path, number: signal.Signals) -> None:
    """Its processes end with it, without messages."""
    folder = write_project(tmp_path / "project")
    with heeded_signals():
        process = subprocess.Popen(
            [*_COMMAND, "build"], cwd=folder, stderr=subprocess.PIPE, start_new_session=True
        )
    built = psutil.Process(process.pid)
    with process:
        # A starting process may report that the build has ended.
        while not any(folder.rglob("drawings/*")):
            assert process.poll() is None, "the build ended before it drew"
            time.sleep(0.05)
        children = built.children(recursive=True)
        # A terminal signals all processes, kill only one.
        (os.killpg if number is signal.SIGINT else os.kill)(process.pid, number)
        assert process.stderr is not None
        output = process.stderr.read().decode()
    assert psutil.wait_procs(children, timeout=crowded(_WAIT_SECONDS))[1] == []
    assert "Traceback" not in output
    assert process.returncode == (130 if number is signal.SIGINT else -number)


@pytest.mark.slow
def test_a_killed_build_leaves_the_former_site_and_is_repeated(copy: Path) -> None:
    """The same command succeeds and removes the remains."""
    folder, former = copy, files_of(copy)
    price = folder / "specs/prices/box-2026.toml"
    price.write_text(price.read_text(encoding="utf-8").replace("0.80", "7.5"), encoding="utf-8")
    with subprocess.Popen([*_COMMAND, "build"], cwd=folder, stderr=subprocess.DEVNULL) as process:
        while not list(folder.glob(".site.building-*/new/*.html")):
            assert process.poll() is None, "the build ended before it wrote a page"
            time.sleep(0.01)
        process.kill()
    assert files_of(folder) == former
    assert build(folder).files["prices.html"] != former["prices.html"]
    assert not list(folder.glob(".site.*"))


def test_a_strict_build_that_fails_leaves_the_former_site(copy: Path) -> None:
    """After a warning, and after an error."""
    folder, former = copy, files_of(copy)
    for path, text in (("docs/linking.md", "[nowhere](nowhere.md)"), ("specs/prices/a.toml", "a")):
        (folder / path).write_text(text, encoding="utf-8")
        command = [*_COMMAND, "build", "--strict"]
        process = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert process.returncode == 1, process.stderr
        assert "Traceback" not in process.stderr
        (folder / path).unlink()
    assert files_of(folder) == former
    assert not list(folder.glob(".site.*"))
