"""The pages of changes: "What changed" since the last publication, "History" and "Changelog".

History shows each figure over time per host, steps marked only where they are significant; the
changelog is the project's CHANGELOG.md, where it has one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup

from epochcost.analysis.difference.changes import Difference
from epochcost.analysis.difference.words import (
    HEADER,
    by_size,
    cells,
    figure_words,
    prediction_words,
    shown_costs,
    summary,
    winner_words,
)
from epochcost.analysis.history import Series, histories
from epochcost.analysis.machines import Machine
from epochcost.analysis.rows import group_by
from epochcost.errors import InputError
from epochcost.report.charts.figure import Figure
from epochcost.report.charts.history import step_history
from epochcost.report.escape import file_stem
from epochcost.report.pages.page import Page, Report
from epochcost.report.tables import Column, Table

# A page is read; all changes are a command away.
MOST_ROWS = 100


def pages(report: Report) -> Iterator[Page]:
    """The three pages; no changelog without its file."""
    yield _changed(report)
    yield _history(report)
    if text := changelog(report):
        yield Page(
            uri="changelog.md",
            title="Changelog",
            template="changelog.md.jinja",
            description="What each version of the program brought.",
            context={"text": Markup(text)},  # noqa: S704  hand-written Markdown, as docs/ is
        )


def _changed(report: Report) -> Page:
    found = report.publication.changes
    return Page(
        uri="changed.md",
        title="What changed",
        template="changed.md.jinja",
        description="Costs, cheapest choices and results that changed since the last publication.",
        context={
            "changelog": bool(changelog(report)),
            "publication": report.publication,
            "changes": found,
            "summary": summary(found) if found else "",
            "costs": _costs(found) if found else None,
            "left": max(0, len(shown_costs(found)) - MOST_ROWS) if found else 0,
            "winners": [winner_words(one) for one in found.winners] if found else [],
            "figures": [figure_words(one) for one in found.figures[:MOST_ROWS]] if found else [],
            "figures_left": max(0, len(found.figures) - MOST_ROWS) if found else 0,
            "predictions": prediction_words(found.predictions) if found else (),
            "results": found.results.by_kind() if found else {},
        },
    )


def _costs(found: Difference) -> Table:
    """The costs that changed most."""
    columns = tuple(Column(name, name.capitalize()) for name in HEADER)
    return Table(columns, tuple(cells(one) for one in by_size(shown_costs(found))[:MOST_ROWS]))


@dataclass(frozen=True)
class Host:
    """One host and device with what was measured there.

    ``again`` was measured more often than once, what moved most first.
    """

    machine: Machine
    again: tuple[Series, ...]
    once: int
    figure: Figure | None


def _history(report: Report) -> Page:
    by_machine = group_by(histories(report.inputs), lambda series: series.machine)
    hosts = [_host(machine, series) for machine, series in by_machine.items()]
    return Page(
        uri="history.md",
        title="History",
        template="history.md.jinja",
        description="Every measured step time over time, by machine.",
        context={"hosts": hosts},
        figures={host.figure.id: host.figure for host in hosts if host.figure},
    )


def _host(machine: Machine, series: tuple[Series, ...]) -> Host:
    again = sorted((one for one in series if len(one.runs) > 1), key=lambda one: -one.farthest)
    name = file_stem(f"{machine.hardware}-{machine.host}-{machine.device}")
    figure = step_history(series, identifier=f"history-{name}")
    return Host(machine, tuple(again), len(series) - len(again), figure)


def changelog(report: Report) -> str:
    """The text below its first heading; empty where there is no such file.

    Raises InputError where it is a link: that may lead to anything on the machine that builds.
    """
    path = report.catalogue.models_folder.parent / "CHANGELOG.md"
    if path.is_symlink():
        raise InputError(f"{path}: expected a file, got a link")
    if not path.is_file():
        return ""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    headed = bool(lines) and lines[0].startswith("# ")
    return "\n".join(lines[headed:]).strip()
