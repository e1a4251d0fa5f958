"""Badges: a workload's cheapest figure as a small SVG to show elsewhere."""

from __future__ import annotations

from epochcost.report.cards import about_wide, shown
from epochcost.report.headlines import Headline

_HEIGHT, _SIZE, _PAD = 20, 11, 8
_FONT = "Verdana, Geneva, DejaVu Sans, sans-serif"
# White on these is readable (4.5:1 and more, WCAG 2.2, success criterion 1.4.3).
_LABEL, _VALUE = "#3c434b", "#00648c"


def badge(found: Headline) -> str:
    """The badge; each text is set to the width of its half, whatever font shows it."""
    value = f"{found.amount} {found.where}"
    left, right = (about_wide(text, _SIZE) + 2 * _PAD for text in (found.job, value))
    spoken = shown(f"{found.job}: {value}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="{_HEIGHT}" '
        f'role="img" aria-label="{spoken}"><title>{spoken}</title>'
        f'<rect width="{left + right}" height="{_HEIGHT}" rx="3" fill="{_LABEL}"/>'
        f'<path d="M{left} 0h{right - 3}q3 0 3 3v{_HEIGHT - 6}q0 3 -3 3h-{right - 3}z" '
        f'fill="{_VALUE}"/>'
        f'<g fill="#ffffff" font-family="{_FONT}" font-size="{_SIZE}">'
        f"{_text(found.job, 0, left)}{_text(value, left, right)}</g></svg>\n"
    )


def _text(text: str, left: int, width: int) -> str:
    length = f'textLength="{width - 2 * _PAD}" lengthAdjust="spacingAndGlyphs"'
    return f'<text x="{left + _PAD}" y="14" {length}>{shown(text)}</text>'
