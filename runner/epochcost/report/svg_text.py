"""Text in SVG: how wide it is about, where it breaks, and what of it may stand there."""

from __future__ import annotations

import html
import textwrap

from epochcost.report.escape import one_line

# Mean advance of a character of a common sans serif over the size of the type; digits and lower
# case lie about it, so that lines may end a little early and never run out.
_ADVANCE = 0.58


def shown(text: str) -> str:
    """The text as XML that shows exactly it, in one line of printable characters."""
    return html.escape(one_line(text))


def about_wide(text: str, size: float) -> int:
    """The width of a line in the unit of ``size``, rounded up."""
    return int(len(one_line(text)) * size * _ADVANCE) + 1


def broken(text: str, size: float, width: float, lines: int) -> list[str]:
    """At most so many lines that fit in the width; what does not fit ends in an ellipsis."""
    most = max(1, int(width / (size * _ADVANCE)))
    return textwrap.wrap(
        one_line(text), most, max_lines=lines, placeholder=" …", break_long_words=True
    )
