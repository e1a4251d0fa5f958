"""A figure: a chart with its title, description and the table of its data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from epochcost.report.tables import Table


class Chart(Protocol):
    """The input of a drawing: a frozen dataclass whose ``repr`` says everything that is drawn."""

    def spec(self) -> dict[str, Any]:
        """The Vega-Lite spec, validated by Altair."""
        ...


@dataclass(frozen=True)
class Figure:
    """A chart in its frame; ``id`` is unique on the site and names the data files."""

    id: str
    title: str
    description: str
    chart: Chart
    table: Table
