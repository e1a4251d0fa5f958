"""The page "History": each figure over time per host, steps marked only where significant."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from epochcost.analysis.history import Series, histories
from epochcost.analysis.observations import Machine
from epochcost.analysis.repository import past_results
from epochcost.analysis.rows import group_by
from epochcost.report.charts.figure import Figure
from epochcost.report.charts.history import step_history
from epochcost.report.pages.page import Page, Report

_NOT_IN_ADDRESS = re.compile(r"[^A-Za-z0-9.-]+")


@dataclass(frozen=True)
class Host:
    """One host and device with what was measured there.

    ``again`` was measured more often than once, what moved most first.
    """

    machine: Machine
    again: tuple[Series, ...]
    once: int
    figure: Figure | None


def pages(report: Report) -> Iterator[Page]:
    """The one page."""
    past = past_results(report.inputs.folders, report.inputs.cache)
    found = group_by(histories(report.inputs, past.results), lambda one: one.machine)
    hosts = [_host(machine, series) for machine, series in found.items()]
    yield Page(
        uri="history.md",
        title="History",
        template="history.md.jinja",
        description="Each measured figure over time, by the machine that it was measured on.",
        context={"hosts": hosts, "past": past},
        figures={host.figure.id: host.figure for host in hosts if host.figure},
    )


def _host(machine: Machine, series: tuple[Series, ...]) -> Host:
    again = sorted((one for one in series if len(one.taken) > 1), key=lambda one: -one.farthest)
    name = _NOT_IN_ADDRESS.sub("-", f"{machine.hardware}-{machine.host}-{machine.device}")
    figure = step_history(series, identifier=f"history-{name}")
    return Host(machine, tuple(again), len(series) - len(again), figure)
