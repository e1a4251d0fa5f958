"""The repository's hand-written pages for small projects, whole or as their headings.

Links lead to pages and headings alone, and a page of headings is built in a tenth of the time.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

_CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ .*", re.MULTILINE)


def copy_pages(repository: Path, folder: Path, whole: bool) -> None:
    """Copy ``docs`` without data, and the pages beside it, to a project's folder."""
    copy = shutil.copy if whole else _copy_headings
    docs, data = repository / "docs", shutil.ignore_patterns("data")
    shutil.copytree(docs, folder / "docs", ignore=data, copy_function=copy)
    for name in ("CHANGELOG.md", "CONTRIBUTING.md"):
        copy(repository / name, folder / name)


def _copy_headings(source: str | Path, target: str | Path) -> None:
    if Path(source).suffix != ".md":
        shutil.copy(source, target)
        return
    text = _CODE.sub("", Path(source).read_text("utf-8"))
    Path(target).write_text("\n\n".join(_HEADING.findall(text)) + "\n", encoding="utf-8")
