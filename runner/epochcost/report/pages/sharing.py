"""The page of what others may show: badges, charts in a frame, and how to cite."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from epochcost.analysis.observations import Subject
from epochcost.report.headlines import Headline, headline
from epochcost.report.pages.page import Page, Report, subject_uri


@dataclass(frozen=True)
class Badge:
    """The badge of a workload: its text, its file and the page that it leads to."""

    subject: Subject
    headline: Headline

    @property
    def uri(self) -> str:
        """Where the SVG is."""
        return subject_uri(self.subject).replace("models/", "badges/", 1).removesuffix("md") + "svg"


def badges_of(report: Report) -> list[Badge]:
    """A badge for each workload with a cost, in the order of their pages."""
    found = ((one, headline(report.answers_of(one))) for one in report.subjects)
    return [Badge(subject, said) for subject, said in found if said is not None]


def pages(report: Report) -> Iterator[Page]:
    """The one page."""
    yield Page(
        uri="sharing.md",
        title="Cite, embed, link",
        template="sharing.md.jinja",
        description="Badges, charts to embed, and how to cite the figures of the site.",
        context={"badges": badges_of(report)},
    )
