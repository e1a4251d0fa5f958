"""A drawing as a file of its own: colours instead of variables, on paper.

In a page the style sheet gives the variables their colours; a file that is opened or shown
elsewhere has none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from epochcost.report.charts.palette import LIGHT

_VARIABLE = re.compile(r"var\((--ec-[a-z0-9-]+)\)")
_OPENING = re.compile(r"<svg [^>]*>")


def standalone(svg: str, colours: Mapping[str, str] = LIGHT) -> str:
    """The SVG with the colours of a palette and its paper behind; raises KeyError on another."""
    paper = f'<rect width="100%" height="100%" fill="{colours["--ec-paper"]}"/>'
    coloured = _VARIABLE.sub(lambda found: colours[found[1]], svg)
    return _OPENING.sub(lambda found: found[0] + paper, coloured, count=1)
