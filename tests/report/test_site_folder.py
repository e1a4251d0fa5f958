"""The folder of a site, which a build fills beside its place and then puts there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from epochcost.errors import CapabilityError
from epochcost.report.site_folder import SiteFolder


def test_a_new_site_takes_the_place_of_the_former(tmp_path: Path) -> None:
    """With the former folder's mode; nothing is left beside it."""
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


def test_a_link_to_a_site_stays_a_link(tmp_path: Path) -> None:
    """What it leads to is replaced, as a server of another user expects."""
    (tmp_path / "served").mkdir()
    (tmp_path / "site").symlink_to(tmp_path / "served")
    folder = SiteFolder(tmp_path / "site")
    folder.new.mkdir()
    (folder.new / "new.html").touch()
    folder.replace()
    folder.close()
    assert (tmp_path / "site").is_symlink()
    assert (tmp_path / "served/new.html").is_file()


def test_two_builds_at_once_both_end(tmp_path: Path) -> None:
    """Neither takes the other's folder for that of a killed build; the last one's site stays."""
    folders = [SiteFolder(tmp_path / "site") for _ in range(2)]
    for number, folder in enumerate(folders):
        folder.new.mkdir()
        (folder.new / f"{number}.html").touch()
        folder.replace()
        folder.close()
    assert [path.name for path in (tmp_path / "site").iterdir()] == ["1.html"]
    assert list(tmp_path.iterdir()) == [tmp_path / "site"]


def test_what_a_killed_build_left_is_removed(tmp_path: Path) -> None:
    """No process holds it any more."""
    left = tmp_path / ".site.building-dead"
    (left / "new").mkdir(parents=True)
    SiteFolder(tmp_path / "site").close()
    assert list(tmp_path.iterdir()) == []


def test_a_mounted_disk_is_refused_before_anything_is_built() -> None:
    """It has no other place to build beside that could be moved there."""
    mounted = next(path for path in map(Path, ("/proc", "/dev", "/")) if os.path.ismount(path))
    with pytest.raises(CapabilityError, match="with --site-dir"):
        SiteFolder(mounted)
