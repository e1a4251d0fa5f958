"""A figure: a chart in its frame, with its title, its description and the table of its data.

Also helpers of charts for values of `analysis`: names of machines, and intervals.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic

from epochcost.analysis.observations import Observation
from epochcost.cost import Estimate, Time
from epochcost.report.charts import theme
from epochcost.report.charts.data import ChartData, Ends, RowT
from epochcost.report.escape import one_line
from epochcost.report.tables import Table
from epochcost.statistics import Bounded


@dataclass(frozen=True)
class Chart(ABC, Generic[RowT]):
    """The input of a drawing, whose ``repr`` contains everything that is drawn.

    A ``paired`` chart is placed next to another.
    """

    data: ChartData[RowT]
    paired: bool = field(default=False, kw_only=True)

    @property
    def height(self) -> int | Mapping[str, int]:
        """The height of the plot in pixels, or the ``step`` from row to row."""
        return 320

    @property
    @abstractmethod
    def summary(self) -> str:
        """The subject of the chart, in a sentence."""

    @abstractmethod
    def layers(self, alt: Any) -> list[Any]:
        """The marks, built with the module Altair."""

    def marks(self, alt: Any) -> Any:
        """A chart of the data, to which callers add a kind of mark."""
        return alt.Chart(alt.Data(values=self.data.values))

    def spec(self) -> dict[str, Any]:
        """The Vega-Lite spec for both renderers.

        Altair validates each part, unless that is turned off; tests validate the whole.
        """
        import altair as alt  # noqa: PLC0415  a cached drawing needs no Altair

        width = theme.PAIRED_WIDTH if self.paired else theme.WIDTH
        one_column = {"columns": 1, "labelLimit": width} if self.paired else {}
        return {
            "$schema": alt.SCHEMA_URL,
            **theme.layered(self.layers(alt)),
            "width": width,
            "height": self.height,
            "autosize": theme.AUTOSIZE,
            "config": {**theme.CONFIG, "legend": {**theme.CONFIG["legend"], **one_column}},
            "description": self.summary,
            "padding": 4,
        }

    def table(self) -> Table:
        """The data for readers and files."""
        return self.data.table()


@dataclass(frozen=True)
class Figure:
    """A chart in its frame; ``id`` is unique on the site and names the data files.

    The spec of a ``scripted`` figure is also published as a script for pages that load it later.
    """

    id: str
    title: str
    description: str
    chart: Chart[Any]
    scripted: bool = False

    @cached_property
    def table(self) -> Table:
        """The data of the chart."""
        return self.chart.table()


def machine_name(observed: Observation) -> str:
    """The machine in one line of printable text."""
    return one_line(observed.machine.name)


def ends(value: Time | Estimate | Bounded) -> Ends:
    """Low, mean and high as numbers to draw."""
    return float(value.low), float(value.mean), float(value.high)
