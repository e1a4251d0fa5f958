"""A figure: a chart in its frame, with its title, its description and the table of its data.

And what charts share that ask the analysis: names and colours of machines, and priced rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic

from epochcost.analysis.observations import Observation
from epochcost.cost import Estimate, Time
from epochcost.report.charts import theme
from epochcost.report.charts.data import ChartData, Ends, RowT
from epochcost.report.escape import one_line
from epochcost.report.tables import Table
from epochcost.specs.hardware import Hardware
from epochcost.statistics import Bounded

Colours = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Chart(ABC, Generic[RowT]):
    """The input of a drawing, whose ``repr`` says everything that is drawn.

    A ``paired`` chart stands beside another.
    """

    data: ChartData[RowT]
    paired: bool = field(default=False, kw_only=True)

    @property
    def height(self) -> int | Mapping[str, int]:
        """Of the plot, in pixels; or the ``step`` from row to row."""
        return 320

    @property
    def long_names(self) -> bool:
        """Whether the names of the legend need a line each."""
        return False

    @property
    def picks(self) -> str:
        """The field that colours tell apart, if a reader may pick some of its values."""
        return ""

    @property
    @abstractmethod
    def summary(self) -> str:
        """What the chart is of, in a sentence."""

    @abstractmethod
    def layers(self, alt: Any) -> list[Any]:
        """The marks, made by the module Altair that is given."""

    def marks(self, alt: Any) -> Any:
        """Marks to be of the data, of no kind yet."""
        return alt.Chart(alt.Data(values=self.data.values))

    def spec(self) -> dict[str, Any]:
        """The Vega-Lite spec as both renderers take it.

        Altair validates each part as it is made, where that is not turned off; the whole is left
        to the tests.
        """
        import altair as alt  # noqa: PLC0415  a cached drawing needs no Altair

        width = theme.PAIRED_WIDTH if self.paired else theme.WIDTH
        one_column = {"columns": 1, "labelLimit": width} if self.paired or self.long_names else {}
        return {
            "$schema": alt.SCHEMA_URL,
            **theme.layered(self.layers(alt), self.picks),
            "width": width,
            "height": self.height,
            "autosize": theme.AUTOSIZE,
            "config": {**theme.CONFIG, "legend": {**theme.CONFIG["legend"], **one_column}},
            "description": self.summary,
            "padding": 4,
        }

    def table(self) -> Table:
        """The data as people and files read it."""
        return self.data.table()


@dataclass(frozen=True)
class Figure:
    """A chart in its frame; ``id`` is unique on the site and names the data files.

    ``scripted``: its spec is a script too, which pages load that show it when asked.
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


def machine_colours(hardware: Iterable[Hardware], observations: Iterable[Observation]) -> Colours:
    """Each machine's number of colour, timed or not: the same on every page.

    Timed machines come first: there are fewer colours than machines, and only they share charts.
    """
    known = {one_line(one.name) for one in hardware if not one.detected}
    timed = {machine_name(one) for one in observations}
    names = sorted(known | timed, key=lambda name: (name not in timed, name))
    return tuple((name, at) for at, name in enumerate(names))


def colours_of(colours: Colours, data: ChartData[Any]) -> Colours:
    """The colours of the machines that are drawn."""
    drawn = set(data.values_of("machine"))
    return tuple(pair for pair in colours if pair[0] in drawn)


def machine_name(observed: Observation) -> str:
    """The machine in one line of printable text."""
    return one_line(observed.machine.name)


def ends(value: Time | Estimate | Bounded) -> Ends:
    """Low, mean and high as numbers to draw."""
    return float(value.low), float(value.mean), float(value.high)
