"""Accepted hostile specs stay text on the site and in comments."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import live_text
from live_text import live_in_html, live_in_site

TESTS = Path(__file__).parents[1]
# Allowed content of a page, and forbidden content without one of its escapes.
_ALIVE = (
    "<script>hax()</script>", "<img src=x onerror=hax()>", "<svg onload=hax()>", "<hax>", "<b hax>",
    "<strong>hax</strong>", "<p><code>hax</code>", "<h1>hax</h1>", "<ul><li>hax</ul>",
    "<a href='java\nscript:hax()'>x</a>", "<a href=javascript:hax()>x", "<p class=hax>",
    "<a href=data:text/html,hax>", "<base href=//x>",
    "<meta http-equiv='refresh hax'>", "<!-- hax -->",
    "<style>hax</style>", "<object>", "<iframe srcdoc=hax>",
)  # fmt: skip
_QUIET = (
    "<p>hax &lt;script&gt;hax()&lt;/script&gt; **hax** [hax](javascript:hax())",
    "<title>hax</title>", '<a href="https://hax.example/&quot;onclick=hax()">hax.example/</a>',
    '<script type="application/json">{"a": "hax"}</script>', '<p title="&lt;hax onerror=hax()">',
    "<strong>**hax**</strong>", '<img src="data:image/png;base64,hax">', "<script>start()</script>",
)  # fmt: skip


@pytest.mark.parametrize("text", _ALIVE)
def test_what_is_alive_is_seen(text: str) -> None:
    """The check detects active content."""
    assert live_in_html(f"<!DOCTYPE html><body><p>words {text}</body>")


@pytest.mark.parametrize("text", _QUIET)
def test_what_is_only_said_is_not(text: str) -> None:
    """Plain text is accepted everywhere."""
    assert live_in_html(f"<!DOCTYPE html><body>{text}</body>") == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.svg", '<svg xmlns="http://www.w3.org/2000/svg"><script>x</script></svg>'),
        ("a.svg", '<svg xmlns="http://www.w3.org/2000/svg"><g onclick="x"/></svg>'),
        ("a.svg", '<svg xmlns:x="http://www.w3.org/1999/xlink" x:href="javascript:hax()"/>'),
        ("a.json", '{"encoding": {"text": {"expr": "hax"}}}'),
        ("a.json", '{"data": [{"href": "javascript:hax()"}]}'),
        ("data/a.js", "window.a = 1; hax()"),
        ("a.csv", 'a,b\n1," =hax"\n'),
        ("a.xml", "<feed>&lt;img src=x onerror=hax()&gt;</feed>"),
        ("search/search_index.json", '{"docs": [{"title": "<hax>", "text": "", "location": ""}]}'),
        ("a.html", f"<p>{live_text.COMPUTED}"),
        ("a.html", f"<p>{live_text.INCLUDED}"),
    ],
)
def test_every_kind_of_file_is_read(tmp_path: Path, name: str, text: str) -> None:
    """The check finds active content in each kind of file of a site."""
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, "utf-8")
    assert [place.partition(":")[0] for place in live_in_site(tmp_path)] == [name]


def fuzz(first: int, count: int) -> dict[str, int]:
    """The outcomes of this many damaged specs, in a process."""
    command = [sys.executable, "-W", "ignore", "-m", "fuzzing_specs", str(first), str(count)]
    process = subprocess.run(command, capture_output=True, text=True, check=False, cwd=TESTS)
    assert process.returncode == 0, process.stderr[-3000:]
    lines = (line.split(maxsplit=1) for line in process.stdout.splitlines())
    # Replaced specs are built or refused, too.
    return {outcome: int(times) for times, outcome in lines if "in place" not in outcome}


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("first", range(0, 5_000, 500))
def test_damaged_specs(first: int) -> None:
    """Some of each kind are built; refusals are one line."""
    outcomes = fuzz(first, 500)
    assert sum(outcomes.values()) == 500
    assert sum(times for outcome, times in outcomes.items() if outcome.startswith("built")) > 2
