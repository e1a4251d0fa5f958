"""The colours of charts: one list per palette, published as CSS variables.

Specs and SVGs name variables only, so that one drawing serves light, dark and print. The series
were found by a search near Okabe and Ito's hues for eight colours whose nearest two are furthest
apart, as seen with usual, protan, deutan and tritan vision: CIEDE2000 is at least 15 between any
two, and each stands out from its background by 3:1 (WCAG 2.2, success criterion 1.4.11). Tests
simulate these visions.

A drawing that is opened or shown outside of the site's pages has no style sheet:
`standalone_svg` gives it colours and paper.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

LIGHT_SERIES = (
    "#4b78ff",
    "#872d00",
    "#006969",
    "#c378a5",
    "#78785a",
    "#4ba500",
    "#3c2d2d",
    "#1e1ea5",
)
DARK_SERIES = (
    "#87d2ff",
    "#c3692d",
    "#2da578",
    "#a587a5",
    "#e1b400",
    "#d2f0a5",
    "#f0e1e1",
    "#8778ff",
)
_LIGHT_INKS = {"ink": "#24292f", "soft": "#57606a", "grid": "#e3e6ea", "paper": "#ffffff"}
_DARK_INKS = {"ink": "#e6e8ee", "soft": "#aab1c0", "grid": "#3a3f4f", "paper": "#1e2129"}


def _variables(inks: Mapping[str, str], series: tuple[str, ...]) -> Mapping[str, str]:
    named = {f"--ec-{name}": value for name, value in inks.items()}
    numbered = {f"--ec-series-{at}": value for at, value in enumerate(series, start=1)}
    return MappingProxyType({**named, **numbered})


LIGHT = _variables(_LIGHT_INKS, LIGHT_SERIES)
DARK = _variables(_DARK_INKS, DARK_SERIES)


def series_colour(number: int) -> str:
    """The CSS variable of the number-th series, from 0; the list repeats."""
    return f"var(--ec-series-{number % len(LIGHT_SERIES) + 1})"


def stylesheet() -> str:
    """The variables for Material's two schemes and for print, which is always light."""
    light, dark = (_declarations(variables) for variables in (LIGHT, DARK))
    return (
        f":root, [data-md-color-scheme=default] {{\n{light}}}\n"
        f"[data-md-color-scheme=slate] {{\n{dark}}}\n"
        f"@media print {{\n:root, [data-md-color-scheme] {{\n{light}}}\n}}\n"
    )


def _declarations(variables: Mapping[str, str]) -> str:
    return "".join(f"  {name}: {value};\n" for name, value in variables.items())


_VARIABLE = re.compile(r"var\((--ec-[a-z0-9-]+)\)")
_OPENING = re.compile(r"<svg [^>]*>")


def standalone_svg(svg: str, colours: Mapping[str, str] = LIGHT) -> str:
    """The SVG with the colours of a palette and its paper behind; raises KeyError on another."""
    paper = f'<rect width="100%" height="100%" fill="{colours["--ec-paper"]}"/>'
    coloured = _VARIABLE.sub(lambda found: colours[found[1]], svg)
    return _OPENING.sub(lambda found: found[0] + paper, coloured, count=1)
