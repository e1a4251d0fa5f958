"""Pictures to show elsewhere: a workload's headline as a badge, and social cards of pages.

A headline is what the cheapest training or million costs, where, and how surely. A badge is a small
SVG of it. A card stands beside a link to a page, a title and its key figure: one for each section
of the site, and one for each workload that was timed. Drawn as SVG here; 1200 by 630 pixels, as
Open Graph's readers show them whole.
"""

from __future__ import annotations

import html
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from textwrap import shorten

from epochcost.analysis.observations import Goal, Workload
from epochcost.report.charts.palette import DARK
from epochcost.report.charts.theme import FONT
from epochcost.report.escape import one_line
from epochcost.report.pages.page import Job, Page, Report, stem, workload_uri
from epochcost.report.ranking import Contender, Contest
from epochcost.report.wording import date_range
from epochcost.units import count_words

_JOBS: Mapping[Goal, str] = {
    "full": "cheapest training",
    "epoch": "cheapest epoch",
    "million": "cheapest million inferences",
}
# Of a machine, so that a badge stays a badge.
_LONGEST_NAME = 44


@dataclass(frozen=True, slots=True)
class Headline:
    """``where`` names machine, date of the price, and what the figure is unless measured."""

    job: str
    amount: str
    where: str


def headline(contests: Mapping[Job, Contest]) -> Headline | None:
    """The cheapest training, else the cheapest million; None where nothing has a price."""
    found = contests.get("train") or contests.get("serve")
    if found is None:
        return None
    return Headline(_JOBS[found.goal], found.cheapest.amount, _where(found.cheapest))


def _where(one: Contender) -> str:
    kind, _, assumed = one.mark.partition(", ")
    name = shorten(one_line(one.name), _LONGEST_NAME, placeholder="…")
    price = f"{'assumed price' if assumed else 'price'} of {one.price.as_of:%Y-%m}"
    return f"on {name}, {price}" + (f", time {kind}" if kind != "measured" else "")


# Mean advance of a character of a common sans serif over the size of the type; digits and lower
# case lie about it, so that lines may end a little early and never run out.
_ADVANCE = 0.58


def xml_text(text: str) -> str:
    """The text as XML that shows exactly it, in one line of printable characters."""
    return html.escape(one_line(text))


def text_width(text: str, size: float) -> int:
    """The width of a line in the unit of ``size``, rounded up."""
    return int(len(one_line(text)) * size * _ADVANCE) + 1


def wrap(text: str, size: float, width: float, lines: int) -> list[str]:
    """At most so many lines that fit in the width; what does not fit ends in an ellipsis."""
    most = max(1, int(width / (size * _ADVANCE)))
    return textwrap.wrap(
        one_line(text), most, max_lines=lines, placeholder=" …", break_long_words=True
    )


WIDTH, HEIGHT = 1200, 630
_MARGIN = 80
_TITLE, _FIGURE, _WORDS, _NAME = 56, 104, 34, 28
_LOGO = '<path d="M5 4v23h23" fill="none" stroke="{ink}" stroke-width="3"/>'
_STEPS = '<path d="M10 9h6v7h6v6h5" fill="none" stroke="{line}" stroke-width="3"/>'


@dataclass(frozen=True, slots=True)
class Card:
    """What a card says; ``name`` is fit for addresses."""

    name: str
    title: str
    figure: str
    words: str

    @property
    def uri(self) -> str:
        """Where its picture is."""
        return f"assets/cards/{self.name}.png"

    @property
    def alt_text(self) -> str:
        """All of it in one line, for who cannot see it."""
        return f"{self.title} {self.figure}: {self.words}"


def card_of(report: Report, section: str, page: Page, first: Page) -> Card:
    """The card of a page: its own where it is of a timed workload, else its section's."""
    workload = page.context.get("workload")
    if isinstance(workload, Workload):
        found = headline(report.contests_of(workload))
        if found is not None:
            return Card(stem(workload), workload.name, found.amount, f"{found.job} {found.where}")
    figure, words = _sections(report).get(section) or _sections(report)["Home"]
    return Card(section.lower().replace(" ", "-"), first.title, figure, words)


def _sections(report: Report) -> Mapping[str, tuple[str, str]]:
    """Figure and words of the sections that have a card of their own, and of all others."""
    catalogue = report.catalogue
    workloads = count_words(sum(map(bool, map(report.contests_of, report.workloads))), "workload")
    dates = date_range(price.as_of for price in catalogue.prices.values())
    return {
        "Home": (workloads, "timed or published, with intervals, dates and evidence"),
        "Models": (workloads, "what an epoch, a whole training and a million inferences cost"),
        "Machines": (
            count_words(len(catalogue.hardware), "machine"),
            "what each costs and is good for",
        ),
        "Prices": (
            count_words(len(catalogue.prices), "price"),
            f"of {dates}, each with its source",
        ),
        "Sources": (
            count_words(len(catalogue.published), "published table"),
            "recomputed, cell by cell",
        ),
        "Data": (
            count_words(len(report.lines), "figure"),
            "as Parquet, CSV and JSON, with a data dictionary",
        ),
    }


def card_svg(card: Card) -> str:
    """The card as SVG, its text within its margins."""
    ink, soft, line = (DARK[f"--ec-{name}"] for name in ("ink", "soft", "series-1"))
    width = WIDTH - 2 * _MARGIN
    title = wrap(card.title, _TITLE, width, 2)
    words = wrap(card.words, _WORDS, width, 2)
    figure = wrap(card.figure, _FIGURE, width, 1)
    parts = [
        *_lines(title, _TITLE, 150, ink, "600"),
        *_lines(figure, _FIGURE, 370, line, "700"),
        *_lines(words, _WORDS, 440, soft, "400"),
        *_lines(["epochcost"], _NAME, HEIGHT - 62, soft, "500", left=_MARGIN + 56),
    ]
    logo = (_LOGO + _STEPS).format(ink=soft, line=line)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}">'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{DARK["--ec-paper"]}"/>'
        f'<rect width="16" height="{HEIGHT}" fill="{line}"/>'
        f'<g transform="translate({_MARGIN} {HEIGHT - 96}) scale(1.3)">{logo}</g>'
        f"{''.join(parts)}</svg>"
    )


def _lines(
    lines: list[str], size: int, top: int, colour: str, weight: str, left: int = _MARGIN
) -> list[str]:
    style = f'font-family="{FONT}" font-size="{size}" font-weight="{weight}" fill="{colour}"'
    return [
        f'<text x="{left}" y="{top + at * size * 5 // 4}" {style}>{xml_text(line)}</text>'
        for at, line in enumerate(lines)
    ]


_BADGE_HEIGHT, _BADGE_SIZE, _BADGE_PAD = 20, 11, 8
_BADGE_FONT = "Verdana, Geneva, DejaVu Sans, sans-serif"
# White on these is readable (4.5:1 and more, WCAG 2.2, success criterion 1.4.3).
_LABEL, _VALUE = "#3c434b", "#00648c"


def badge_svg(found: Headline) -> str:
    """The badge; each text is set to the width of its half, whatever font shows it."""
    value = f"{found.amount} {found.where}"
    left, right = (text_width(text, _BADGE_SIZE) + 2 * _BADGE_PAD for text in (found.job, value))
    spoken = xml_text(f"{found.job}: {value}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="{_BADGE_HEIGHT}" '
        f'role="img" aria-label="{spoken}"><title>{spoken}</title>'
        f'<rect width="{left + right}" height="{_BADGE_HEIGHT}" rx="3" fill="{_LABEL}"/>'
        f'<path d="M{left} 0h{right - 3}q3 0 3 3v{_BADGE_HEIGHT - 6}q0 3 -3 3h-{right - 3}z" '
        f'fill="{_VALUE}"/>'
        f'<g fill="#ffffff" font-family="{_BADGE_FONT}" font-size="{_BADGE_SIZE}">'
        f"{_badge_text(found.job, 0, left)}{_badge_text(value, left, right)}</g></svg>\n"
    )


def _badge_text(text: str, left: int, width: int) -> str:
    length = f'textLength="{width - 2 * _BADGE_PAD}" lengthAdjust="spacingAndGlyphs"'
    return f'<text x="{left + _BADGE_PAD}" y="14" {length}>{xml_text(text)}</text>'


@dataclass(frozen=True)
class Badge:
    """The badge of a workload: its text, its file and the page that it leads to."""

    workload: Workload
    headline: Headline

    @property
    def uri(self) -> str:
        """Where the SVG is."""
        return (
            workload_uri(self.workload).replace("models/", "badges/", 1).removesuffix("md") + "svg"
        )


def badges_of(report: Report) -> list[Badge]:
    """A badge for each workload with a cost, in the order of their pages."""
    found = ((one, headline(report.contests_of(one))) for one in report.workloads)
    return [Badge(workload, line) for workload, line in found if line is not None]
