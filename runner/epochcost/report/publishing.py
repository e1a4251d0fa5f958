"""Decide which files a site publishes and which scripts run, and replace the site's folder.

A build that fails leaves the earlier site unchanged.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import re
import shutil
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from epochcost.errors import CapabilityError, Fault, InputError
from epochcost.results.files import locked, workplace

# A placeholder until every inline script of the site is known.
_PLACE = "{script-hashes}"
# Without `eval`, because Vega's own interpreter computes its expressions. With inline styles,
# because tables, SVG and Vega's tooltips use them.
POLICY_DRAFT = (
    f"default-src 'self'; script-src 'self' {_PLACE}; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; object-src 'none'; base-uri 'self'; form-action 'self'"
)
_SCRIPT = re.compile(r"<script(?P<attributes>[^>]*)>(?P<code>.*?)</script>", re.DOTALL)
_NOT_RUN = re.compile(r"""\bsrc=|\btype=["']?application/""")


def script_hashes(page: str) -> set[str]:
    """Compute the source expressions ('sha256-…', CSP level 3) of a page's inline scripts."""
    return {
        f"'sha256-{base64.b64encode(hashlib.sha256(script['code'].encode()).digest()).decode()}'"
        for script in _SCRIPT.finditer(page)
        if not _NOT_RUN.search(script["attributes"])
    }


def write_policy(folder: Path, hashes: Iterable[str]) -> None:
    """Allow inline scripts by hash in the Content-Security-Policy of every page in a folder."""
    # One policy for all pages: during instant navigation, the first page's policy stays in force.
    sources = " ".join(sorted(hashes)).encode()
    for path in folder.rglob("*.html"):
        page = path.read_bytes()
        if _PLACE.encode() in page:
            path.write_bytes(page.replace(_PLACE.encode(), sources, 1))


# Pages, data, and pictures that cannot hold a script.
KINDS = (".md", ".json", ".png", ".jpg", ".jpeg", ".gif", ".webp", ".avif")


def link_faults(docs: Path) -> Iterator[Fault]:
    """Yield a fault for every symbolic link below a folder; no link is followed."""
    for folder, folders, files in os.walk(docs):
        for path in (Path(folder, name) for name in sorted((*folders, *files))):
            if path.is_symlink():
                yield Fault(path, 1, 1, "expected a file or folder, got a link")


def refusal(
    path: Path,
    *,
    links: frozenset[Path],
    named: Collection[Path],
    results: Collection[Path],
    read: Collection[Path],
) -> str | None:
    """The reason why a file of the docs folder is left out of the site; None if it is published.

    Nothing behind the symbolic ``links`` is published. In the folders ``results``, only files that
    the build has ``read`` are published. Elsewhere, pages, JSON files, pictures and the files
    ``named`` in MkDocs' configuration are published. All paths are absolute.
    """
    if not links.isdisjoint((path, *path.parents)):
        return "expected a file, got one behind a link"
    if any(path.is_relative_to(folder) for folder in results):
        return None if path in read else "expected a stored result, got another file"
    if path in named or path.suffix.lower() in KINDS:
        return None
    return f"expected a page, a picture or data ({', '.join(KINDS)}), got another kind"


class SiteFolder:
    """The folder that a build fills. It is next to the site's folder, and finally replaces it."""

    def __init__(self, place: Path) -> None:
        """Create a folder beside ``place``, the site's; raises CapabilityError if impossible."""
        self._place = place.resolve()
        if os.path.ismount(self._place):
            raise CapabilityError(
                f"{place}: expected a folder that a new one can replace, got a mounted disk: name "
                "a folder on it with --site-dir"
            )
        self._kept = contextlib.ExitStack()
        building = workplace(self._place.parent, f".{self._place.name[:64]}.building-")
        try:
            self._folder = self._kept.enter_context(building)
        except OSError as error:
            raise _refusal(place, error) from error
        self.new = self._folder / "new"

    def replace(self) -> None:
        """Move the new folder to the site's place; raises CapabilityError if that is impossible."""
        former = self._folder / "former"
        try:
            with locked(self._place.parent):
                if self._place.exists():
                    shutil.copymode(self._place, self.new)
                    self._place.rename(former)
                try:
                    self.new.rename(self._place)
                except OSError:
                    # Otherwise `close` would delete it.
                    if former.exists():
                        former.rename(self._place)
                    raise
        except OSError as error:
            raise _refusal(self._place, error) from error

    def close(self) -> None:
        """Delete the build's folder and its site: the new or, after ``replace``, the former one."""
        self._kept.close()


def _refusal(place: Path, error: OSError) -> CapabilityError:
    return CapabilityError(
        f"{place}: expected free space and permission to create a folder next to it, got "
        f"{error.strerror or error}: free some space, or name another folder with --site-dir"
    )


def write_site(contents: Iterable[tuple[str, bytes]], docs: Path, folder: Path) -> int:
    """Write the site's files into a folder, whose other files stay; return their number.

    Raises InputError if ``folder`` and ``docs`` overlap, and CapabilityError if writing fails.
    """
    inner, outer = folder.resolve(), docs.resolve()
    if inner.is_relative_to(outer) or outer.is_relative_to(inner):
        raise InputError(f"{folder}: expected a folder apart from {docs}, whose pages are copied")
    count = 0
    try:
        for uri, content in contents:
            target = folder / uri
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            count += 1
    except OSError as error:
        raise CapabilityError(f"{folder}: cannot write: {error.strerror or error}") from error
    return count
