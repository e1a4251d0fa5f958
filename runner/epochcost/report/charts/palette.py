"""The colours of charts: one list per palette, published as CSS variables.

Specs and SVGs name variables only, so that one drawing serves light, dark and print. The series
are Okabe and Ito's colour-blind safe hues, darkened or lightened until each stands out from its
background by at least 3:1 (WCAG 2.2, success criterion 1.4.11).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

LIGHT_SERIES = (
    "#0072b2",
    "#c04f00",
    "#007a5a",
    "#a8467f",
    "#8a6a00",
    "#5f7f00",
    "#5b5b5b",
    "#7a4fb5",
)
DARK_SERIES = (
    "#56b4e9",
    "#f08a4b",
    "#3fc79a",
    "#e79ac4",
    "#e6b33c",
    "#b5d04a",
    "#c4c4c4",
    "#b99cf0",
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
