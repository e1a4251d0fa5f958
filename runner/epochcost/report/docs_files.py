"""Which files of the docs folder belong to the site: by kind and by name, and never through a link.

A file that is published runs on the site's own origin and, unless the theme framed it, without the
pages' policy. What a link leads to may be anything on the machine that builds.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from epochcost.errors import CapabilityError, Fault, InputError

# Pages, data, and pictures that cannot hold a script.
KINDS = (".md", ".json", ".png", ".jpg", ".jpeg", ".gif", ".webp", ".avif")


def links(docs: Path) -> Iterator[Fault]:
    """A fault for every link below a folder, to a file, a folder or nothing; none is followed."""
    for folder, folders, files in os.walk(docs):
        for path in (Path(folder, name) for name in sorted((*folders, *files))):
            if path.is_symlink():
                yield Fault(path, 1, 1, "demanded a file or folder of its own; got a link")


@dataclass(frozen=True, slots=True)
class DocsFiles:
    """What belongs to one build; all paths are absolute.

    ``links`` lie below the docs folder, ``named`` are files that the configuration names, such as
    style sheets; below ``results``, folders of stored results, only the files of ``read`` belong.
    """

    links: frozenset[Path]
    named: Collection[Path]
    results: Collection[Path]
    read: Collection[Path]

    def refusal(self, path: Path) -> str | None:
        """Why a file is left out of the site; None where it belongs."""
        if not self.links.isdisjoint((path, *path.parents)):
            return "demanded a file of its own; got one behind a link"
        if any(path.is_relative_to(folder) for folder in self.results):
            return None if path in self.read else "demanded a stored result; got another file"
        if path in self.named or path.suffix.lower() in KINDS:
            return None
        return f"demanded a page, a picture or data ({', '.join(KINDS)}); got another kind"


def write_site(contents: Iterable[tuple[str, bytes]], docs: Path, folder: Path) -> int:
    """Write what stands at each address of the site below a folder; how many files.

    Files of the same names are replaced, others stay. Raises InputError where ``folder`` is inside
    ``docs`` or holds it, and CapabilityError where it cannot be written.
    """
    inner, outer = folder.resolve(), docs.resolve()
    if inner.is_relative_to(outer) or outer.is_relative_to(inner):
        raise InputError(f"{folder}: demanded a folder apart from {docs}, whose pages are copied")
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
