"""A site built with what earlier builds kept is, byte for byte, the site built from nothing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from mkdocs.config import load_config

from epochcost.report.keeping.conversion import conversion
from epochcost.report.keeping.frame import frame
from report_project import write_project

_KEPT = Path(".cache/epochcost/charts/pages")


@dataclass(frozen=True)
class Built:
    """A site's files, and what was complained of."""

    files: Mapping[str, bytes]
    complaints: tuple[str, ...]


def _built(folder: Path) -> Built:
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build"]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    site = folder / "site"
    files = {path: path.read_bytes() for path in site.rglob("*") if path.is_file()}
    complaints = sorted(line for line in done.stderr.splitlines() if line.startswith("WARNING"))
    named = {path.relative_to(site).as_posix(): content for path, content in files.items()}
    return Built(named, tuple(complaints))


@pytest.fixture(scope="module", name="project")
def project_fixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a page whose links lead nowhere."""
    folder = write_project(tmp_path_factory.mktemp("kept"))
    (folder / "docs/method").mkdir(parents=True, exist_ok=True)
    (folder / "docs/method/linking.md").write_text(
        "# Linking\n\nTo [prices](../prices.md#none-such) and [another](beside.md), and "
        "[nowhere](nowhere.md).\n",
        encoding="utf-8",
    )
    return folder


@pytest.fixture(scope="module", name="first")
def first_fixture(project: Path) -> Built:
    """The site built from nothing."""
    return _built(project)


def _replaced(path: Path, pattern: str, replacement: str) -> None:
    text, count = re.subn(pattern, replacement, path.read_text(encoding="utf-8"), flags=re.M)
    assert count, f"{path}: no {pattern}"
    path.write_text(text, encoding="utf-8")


def _times(folder: Path) -> Mapping[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in (folder / _KEPT).rglob("*")}


def test_an_unchanged_site_is_taken_as_it_is_kept(project: Path, first: Built) -> None:
    """Nothing is made anew, each file is the same, and each broken link is complained of again."""
    before = _times(project)
    second = _built(project)
    assert second == first
    assert _times(project) == before
    assert len(before) > 3 * 5
    for name in ("beside.md", "nowhere.md", "none-such"):
        assert name in " ".join(second.complaints)


def test_what_is_damaged_is_made_anew(project: Path, first: Built) -> None:
    """Files that were cut short cost time, nothing else, even where the list of them stands."""
    charts = [*(project / _KEPT).parent.glob("*.json")]
    kept = [path for path in (project / _KEPT).rglob("*") if path.is_file()]
    for path in (*charts[:2], *kept):
        if path.parent.name != "report":
            path.write_bytes(path.read_bytes()[:-9] + b"!")
    assert _built(project) == first


def test_what_follows_from_a_change_is_made_anew(
    project: Path, first: Built, tmp_path: Path
) -> None:
    """A price, a name and a page that a link was missing: as built from nothing."""
    project = shutil.copytree(project, tmp_path / "changed")
    _replaced(project / "specs/prices/box-2026.toml", r"amount = .*", "amount = 7.5")
    _replaced(project / "specs/hardware/local.toml", r"^( *)name = .*", r'\1name = "Renamed"')
    (project / "docs/method/beside.md").write_text("# Beside\n\nA page.\n", encoding="utf-8")
    kept = _built(project)
    shutil.rmtree(project / _KEPT)
    assert _built(project) == kept, "converted in processes beside, with the same complaints"
    assert kept.complaints != first.complaints
    assert kept.files["prices.html"] != first.files["prices.html"]


def test_what_is_done_beside_is_as_one_process_does_it(
    project: Path, first: Built, tmp_path: Path
) -> None:
    """With a hook, which may look at anything, one process copies and frames all, to the same."""
    alone = shutil.copytree(project, tmp_path / project.name)  # pages say its name
    shutil.rmtree(alone / _KEPT)
    (alone / "hook.py").write_text("", encoding="utf-8")
    _replaced(alone / "mkdocs.yml", r"\Z", "\nhooks: [hook.py]\n")
    assert _built(alone) == first


def test_the_frame_is_known_by_templates_and_configuration(tmp_path: Path) -> None:
    """A template of the site's own, an option of the theme, the policy: each is another frame."""
    folder = write_project(tmp_path)

    def now(policy: str = "") -> str | None:
        return frame(load_config(str(folder / "mkdocs.yml")), policy)

    seen = [now(), now("default-src 'self'")]
    own = folder / "site_templates/theme/main.html"
    own.write_text(own.read_text(encoding="utf-8") + "<!-- changed -->", encoding="utf-8")
    seen.append(now())
    _replaced(folder / "mkdocs.yml", r"^site_name: .*", "site_name: another name")
    seen.append(now())
    _replaced(folder / "mkdocs.yml", r"^  font: false", "  font: false\n  language: de")
    seen.append(now())
    assert len({*seen}) == len(seen)
    assert None not in seen
    own.write_text(own.read_text(encoding="utf-8") + "{{ build_date_utc }}", encoding="utf-8")
    assert now() is None


def test_nothing_is_kept_of_what_an_unknown_extension_makes(tmp_path: Path) -> None:
    """An extension may read other files: with one beyond those known, all pages are converted."""
    folder = write_project(tmp_path)
    config = load_config(str(folder / "mkdocs.yml"))
    known = conversion(config)
    config.mdx_configs["toc"]["title"] = "Contents"
    assert None not in {known, conversion(config)}
    assert conversion(config) != known
    config.markdown_extensions.append("pymdownx.snippets")
    assert conversion(config) is None
