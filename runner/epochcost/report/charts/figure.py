"""Define `Figure`, a chart with texts and a table of data; format intervals and days."""

from __future__ import annotations

import datetime as dt
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from epochcost.cost.estimate import Estimate, Time
from epochcost.report.charts import theme
from epochcost.report.charts.data import ChartData, Ends
from epochcost.statistics.interval import Bounded

# Fewer points that differ are a sentence or a table.
LEAST_POINTS = 3


@dataclass(frozen=True, kw_only=True)
class Figure(ABC):
    """A chart with texts; ``title`` states the main result, ``source`` the origin of the values.

    ``id`` is unique, ``height`` is that of the plot in pixels. The ``repr`` is the key of a cached
    drawing, so it must be complete.
    """

    id: str
    title: str
    description: str
    data: ChartData[Any]
    source: str = ""
    height: int = 340

    @abstractmethod
    def layers(self, alt: Any) -> list[Any]:
        """The marks of the chart; ``alt`` is the module Altair."""

    def marks(self, alt: Any) -> Any:
        """Make an Altair chart of the data; the caller adds the kind of mark, such as bars."""
        return alt.Chart(alt.Data(values=self.data.values))

    def spec(self) -> dict[str, Any]:
        """The Vega-Lite spec, for pictures and the browser; only tests validate all of it."""
        import altair as alt  # noqa: PLC0415  a cached drawing needs no Altair

        return {
            **alt.layer(*self.layers(alt)).to_dict(validate=False),
            "width": theme.WIDTH,
            "height": self.height,
            "autosize": theme.AUTOSIZE,
            "config": dict(theme.CONFIG),
            "description": self.title,
            "padding": 4,
        }


def ends(value: Time | Estimate | Bounded) -> Ends:
    """Low end, mean and high end of an interval, as numbers to draw."""
    return float(value.low), float(value.mean), float(value.high)


def day_range(days: Iterable[dt.date]) -> str:
    """Format the first and the last of some days ("… to …"), or one day if they are equal."""
    ordered = sorted(days)
    return " to ".join(dict.fromkeys(str(day) for day in (ordered[0], ordered[-1])))
