"""The content security policy of the site's pages: what a browser may load, run and send.

Everything comes from the site itself. Inline scripts are the theme's and run by their hashes; the
policy is the same on all pages, because under instant navigation the first page's stays in force
and a different one would be added to it. Vega evaluates its expressions by interpretation, so that
no text becomes code. Inline styles are allowed: tables, SVG and Vega's tooltips carry them.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

# Stands in the pages until every inline script of the site is known.
_PLACE = "{script-hashes}"
DRAFT = (
    f"default-src 'self'; script-src 'self' {_PLACE}; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; object-src 'none'; base-uri 'self'; form-action 'self'"
)
_SCRIPT = re.compile(r"<script(?P<attributes>[^>]*)>(?P<code>.*?)</script>", re.DOTALL)
_NOT_RUN = re.compile(r"""\bsrc=|\btype=["']?application/""")


def script_hashes(page: str) -> set[str]:
    """The source expressions ('sha256-…', CSP level 3) of the page's inline scripts."""
    return {
        f"'sha256-{base64.b64encode(hashlib.sha256(found['code'].encode()).digest()).decode()}'"
        for found in _SCRIPT.finditer(page)
        if not _NOT_RUN.search(found["attributes"])
    }


def complete(folder: Path, hashes: Iterable[str]) -> None:
    """Put the hashes of all inline scripts into the policy of every page under a folder."""
    said = " ".join(sorted(hashes)).encode()
    for path in folder.rglob("*.html"):
        page = path.read_bytes()
        if _PLACE.encode() in page:
            path.write_bytes(page.replace(_PLACE.encode(), said, 1))
