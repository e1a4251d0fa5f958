"""The site as a folder of Markdown and files, for a generator that knows no plugins of MkDocs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from epochcost.errors import CapabilityError, InputError


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
