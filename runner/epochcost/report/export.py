"""The site as a folder of Markdown and files, for a generator that knows no plugins of MkDocs."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from epochcost.errors import CapabilityError, InputError
from epochcost.report.additions import Additions
from epochcost.report.injection import inject, with_addresses


def write_site(
    added: Additions, address: Callable[[str, str], str], docs: Path, folder: Path
) -> int:
    """Write hand-written pages, generated ones with their charts, and all files; how many.

    ``address`` is that of a file, the second, as a page links to it. Files of the same names are
    replaced, others stay. Raises InputError where ``folder`` is inside ``docs`` or
    holds it, and CapabilityError where it cannot be written.
    """
    inner, outer = folder.resolve(), docs.resolve()
    if inner.is_relative_to(outer) or outer.is_relative_to(inner):
        raise InputError(f"{folder}: demanded a folder apart from {docs}, whose pages are copied")
    written = set()
    try:
        for source in sorted(path for path in docs.rglob("*") if path.is_file()):
            written.add(_copied(source, folder / source.relative_to(docs)))
        for uri, path in added.results.items():
            written.add(_copied(path, folder / uri))
        for uri, content in _contents(added, address):
            written.add(_stored(content, folder / uri))
    except OSError as error:
        raise CapabilityError(f"{folder}: cannot write: {error.strerror or error}") from error
    return len(written)


def _contents(added: Additions, address: Callable[[str, str], str]) -> Iterator[tuple[str, bytes]]:
    for uri, page in added.pages.items():
        text = with_addresses(page().decode(), partial(address, uri))
        yield uri, inject(text, added.figures).encode()
    for uri, content in added.files.items():
        yield uri, content()


def _copied(source: Path, target: Path) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copyfile(source, target))


def _stored(content: bytes, target: Path) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
    return target
