"""The pages' content security policy: hashes of what runs, in every page alike."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

from epochcost.report.policy import DRAFT, complete, script_hashes

_CODE = "window.a = 1 < 2"


def test_only_inline_scripts_that_run_have_a_hash() -> None:
    """Files are allowed by their place, and data is not run."""
    page = (
        '<script src="a.js"></script><script type="application/json">{}</script>'
        f"<script>{_CODE}</script><script id='x'>{_CODE}</script>"
    )
    digest = base64.b64encode(hashlib.sha256(_CODE.encode()).digest()).decode()
    assert script_hashes(page) == {f"'sha256-{digest}'"}


def test_all_pages_get_one_policy(tmp_path: Path) -> None:
    """Each page names the scripts of every page, in one order; a page without a policy stays."""
    for name in ("a.html", "deep/b.html"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f'<meta content="{DRAFT}">', encoding="utf-8")
    (tmp_path / "plain.html").write_text("<p>", encoding="utf-8")
    complete(tmp_path, {"'sha256-b'", "'sha256-a'"})
    first, second = ((tmp_path / name).read_text() for name in ("a.html", "deep/b.html"))
    assert first == second
    assert "script-src 'self' 'sha256-a' 'sha256-b';" in first
    assert "unsafe-eval" not in first
    assert (tmp_path / "plain.html").read_text() == "<p>"
