"""Published files, scripts allowed on pages, and atomic replacement of the site's folder."""

from __future__ import annotations

import base64
import errno
import hashlib
import os
from functools import partial
from pathlib import Path

import pytest

from epochcost.errors import CapabilityError
from epochcost.report.publishing import (
    POLICY_DRAFT,
    SiteFolder,
    refusal,
    script_hashes,
    write_policy,
)

_DOCS = Path("/docs")


# A docs folder with a linked folder, a named style sheet and a read result.
_refusal = partial(
    refusal,
    links=frozenset({_DOCS / "linked"}),
    named={_DOCS / "own.css"},
    results=[_DOCS / "data/results"],
    read={_DOCS / "data/results/a/1.json"},
)


@pytest.mark.parametrize(
    "name", ["a.md", "a/b.PNG", "schemas/a.json", "own.css", "data/results/a/1.json"]
)
def test_what_belongs(name: str) -> None:
    """Pages, pictures, data, named files and read results are published."""
    assert _refusal(_DOCS / name) is None


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("evil.html", "got another kind"),
        ("evil.svg", "got another kind"),
        ("other.css", "got another kind"),
        ("no-kind", "got another kind"),
        ("data/results/a/evil.html", "got another file"),
        ("data/results/a/2.json", "got another file"),
        ("data/results/a.md", "got another file"),
        ("linked", "behind a link"),
        ("linked/a.md", "behind a link"),
    ],
)
def test_what_does_not(name: str, message: str) -> None:
    """Other kinds of files, unread files among results, and files behind links are refused."""
    assert message in str(_refusal(_DOCS / name))


_CODE = "window.a = 1 < 2"


def test_only_inline_scripts_that_run_have_a_hash() -> None:
    """Hashes cover inline scripts, not scripts in files or data that does not run."""
    page = (
        '<script src="a.js"></script><script type="application/json">{}</script>'
        f"<script>{_CODE}</script><script id='x'>{_CODE}</script>"
    )
    digest = base64.b64encode(hashlib.sha256(_CODE.encode()).digest()).decode()
    assert script_hashes(page) == {f"'sha256-{digest}'"}


def test_all_pages_get_one_policy(tmp_path: Path) -> None:
    """Each page gets the hashes of all pages' scripts; a page without a policy is unchanged."""
    for name in ("a.html", "deep/b.html"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f'<meta content="{POLICY_DRAFT}">', encoding="utf-8")
    (tmp_path / "plain.html").write_text("<p>", encoding="utf-8")
    write_policy(tmp_path, {"'sha256-b'", "'sha256-a'"})
    first, second = ((tmp_path / name).read_text() for name in ("a.html", "deep/b.html"))
    assert first == second
    assert "script-src 'self' 'sha256-a' 'sha256-b';" in first
    assert "unsafe-eval" not in first
    assert (tmp_path / "plain.html").read_text() == "<p>"


def test_a_new_site_takes_the_place_of_the_former(tmp_path: Path) -> None:
    """The new site replaces the earlier one and keeps the folder's mode."""
    place = tmp_path / "site"
    place.mkdir(mode=0o750)
    (place / "former.html").touch()
    folder = SiteFolder(place)
    folder.new.mkdir()
    (folder.new / "new.html").touch()
    assert [path.name for path in place.iterdir()] == ["former.html"]
    folder.replace()
    folder.close()
    assert [path.name for path in place.iterdir()] == ["new.html"]
    assert place.stat().st_mode & 0o777 == 0o750
    assert list(tmp_path.iterdir()) == [place]


def test_a_site_that_cannot_take_its_place_leaves_the_former(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If only the last step fails, as on a full disk, the earlier site comes back."""
    place = tmp_path / "site"
    place.mkdir()
    (place / "former.html").touch()
    folder, rename = SiteFolder(place), Path.rename
    folder.new.mkdir()

    def full(source: Path, target: Path) -> Path:
        if source == folder.new:
            raise OSError(errno.ENOSPC, "no space")
        return rename(source, target)

    monkeypatch.setattr(Path, "rename", full)
    with pytest.raises(CapabilityError, match="no space"):
        folder.replace()
    folder.close()
    assert [path.name for path in place.iterdir()] == ["former.html"]


def test_two_builds_at_once_both_end(tmp_path: Path) -> None:
    """Of two builds at once, neither removes the folder of the other; the last site stays."""
    folders = [SiteFolder(tmp_path / "site") for _ in range(2)]
    for number, folder in enumerate(folders):
        folder.new.mkdir()
        (folder.new / f"{number}.html").touch()
        folder.replace()
        folder.close()
    assert [path.name for path in (tmp_path / "site").iterdir()] == ["1.html"]
    assert list(tmp_path.iterdir()) == [tmp_path / "site"]


def test_what_a_killed_build_left_is_removed(tmp_path: Path) -> None:
    """The next build removes a building folder that no process locks."""
    remains = tmp_path / ".site.building-dead"
    (remains / "new").mkdir(parents=True)
    SiteFolder(tmp_path / "site").close()
    assert list(tmp_path.iterdir()) == []


def test_a_mounted_disk_is_refused_before_anything_is_built() -> None:
    """A mount point cannot be replaced by renaming."""
    mounted = next(path for path in map(Path, ("/proc", "/dev", "/")) if os.path.ismount(path))
    with pytest.raises(CapabilityError, match="with --site-dir"):
        SiteFolder(mounted)
