"""What a build of the report adds to the hand-written pages: made now, or kept from a build before.

Nothing of it is made before it is asked for: together it is larger than all that makes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from epochcost.report.charts.figure import Figure

ASSETS = "assets"
# Takes figures and cards, these as SVG, as soon as they are known.
Draw = Callable[[Iterable[Figure], Iterable[str]], None]


@dataclass(frozen=True)
class Section:
    """A part of the navigation: a page by itself, or titled pages by address, the first leading."""

    title: str
    pages: Mapping[str, str]


@dataclass(frozen=True)
class Site:
    """The report as it was built; addresses are relative to the docs folder.

    ``results`` are the result files by address. ``figures`` by id are drawn where a page shows
    them. ``embedded`` are pages of one chart each, not drawn yet, and ``cards`` pictures as SVG.
    ``problems`` are sentences about what is left out. ``lasting`` is False where the same inputs
    may yet give another report.
    """

    pages: Mapping[str, str]
    files: Mapping[str, str | bytes]
    results: Mapping[str, Path]
    figures: Mapping[str, Figure]
    sections: tuple[Section, ...]
    embedded: Mapping[str, str] = field(default_factory=dict)
    cards: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    lasting: bool = True


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a page or file, made when it is called.

    ``cause`` is a digest of all that it follows from beside the program; empty where nobody said
    it, as of what is made already.
    """

    make: Callable[[], str | bytes]
    cause: str = ""

    def __call__(self) -> bytes:
        """The content; text as UTF-8."""
        made = self.make()
        return made if isinstance(made, bytes) else made.encode()


@dataclass(frozen=True, slots=True)
class Shown:
    """What finished pages show of a figure: HTML that is made when it is asked for.

    ``label`` says the chart to who cannot see it, ``drawing`` is the name of its kept drawing, and
    ``stamp`` a digest of all that is shown.
    """

    stamp: str
    label: str
    drawing: str
    plot: Callable[[], str]
    table: Callable[[], str]


@dataclass(frozen=True)
class Additions:
    """A site's parts, ``figures`` what pages show by the figures' ids; ``draw`` draws the rest."""

    pages: Mapping[str, Content]
    files: Mapping[str, Content]
    results: Mapping[str, Path]
    sections: tuple[Section, ...]
    figures: Mapping[str, Shown]
    problems: tuple[str, ...] = ()
    draw: Callable[[], None] = lambda: None
    lasting: bool = True
