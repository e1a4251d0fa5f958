"""What other people published: measurements, claims, and tables of measured times.

``predict.rates`` reads the rows of a table of times from a CSV file in the spec's folder.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field, model_validator

from epochcost.specs.base import (
    FROM_LIST,
    Identifier,
    NamedSpec,
    NonNegative,
    Notes,
    Positive,
    PositiveInt,
    Source,
    Spec,
    TableName,
    Text,
    Unconfirmed,
    distinct,
    matching,
)
from epochcost.units import SECONDS_PER_HOUR

Unit = Literal[
    "USD",
    "US cents",
    "thousand USD",
    "million USD",
    "seconds",
    "hours",
    "kWh",
    "lb CO2e",
    "ratio",
    "percent",
    "steps",
    "million examples",
]
# The digits as printed in the source, so that our figure can be compared at that precision.
Printed = Annotated[
    str,
    matching(
        r"([0-9]{1,15}|[0-9]{1,3}(,[0-9]{3}){1,4})(\.[0-9]{1,15})?",
        'printed digits in quotes, such as "4.3" or "12,571"',
    ),
]


def half_unit(value: Decimal) -> Decimal:
    """Half a unit of a number's last digit: the largest error that rounding can cause."""
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int), "specs hold finite numbers"
    return Decimal(5).scaleb(exponent - 1)


class Claim(Spec):
    """A number in a source, which a function of `cost.claims` recomputes from its row's inputs.

    A number that is ``shown`` as drawn comes from a chart whose data the source publishes.
    ``relation`` is ``at-least`` if the source only says that the number is larger.
    """

    label: Text = Field(description="Quantity of the value.", examples=["cost of 12 epochs"])
    printed: Printed = Field(
        description="The digits that the source shows, in quotes.", examples=["4.3"]
    )
    unit: Unit = Field(description="The unit of the value.")
    price: Identifier | None = Field(
        None, description="Price that replaces the row's, by id in prices/."
    )
    relation: Literal["equal", "at-least"] = Field(
        "equal", description="Whether our figure should be equal, or at least as large."
    )
    shown: Literal["printed", "drawn", "derived"] = Field(
        "printed",
        description=(
            "Whether the source prints the value, shows it in a chart, or prints figures from "
            "which it follows."
        ),
    )
    confirmed: bool = Field(True, description="False if we could not check the value in a source.")
    differs: Text | None = Field(
        None, description="Reason if our figure differs at the printed precision, else left out."
    )

    @property
    def value(self) -> Decimal:
        """The printed number; its digits show how precise it is."""
        return Decimal(self.printed.replace(",", ""))


class Timing(Spec):
    """A row of a source's table: the time and the price of a workload on ``count`` machines.

    The source states the time of one epoch, or of the whole work in seconds or hours, rounded to
    its last digit.
    """

    id: Identifier = Field(
        description="The name of the row, for claims of other rows.",
        examples=["p3.2xlarge"],
    )
    name: Text | None = Field(
        None, description="The row's name in the source.", examples=["AWS p3.2xlarge"]
    )
    hardware: Identifier = Field(
        description="The machine, by its id in hardware/.", examples=["p3.2xlarge"]
    )
    count: PositiveInt = Field(1, description="Number of machines.", examples=[1])
    price: Identifier | None = Field(
        None,
        description="Price of the machine, by the id of a plan in prices/.",
        examples=["p3.2xlarge-on-demand-2017-11"],
    )
    batch_size: PositiveInt | None = Field(None, description="Examples in a step.", examples=[128])
    seconds_per_epoch: Positive | None = Field(
        None, description="The source's time of one epoch, in seconds.", examples=[46]
    )
    seconds: Positive | None = Field(
        None,
        description="The source's time of the whole work, in seconds.",
        examples=[428],
    )
    hours: Positive | None = Field(
        None,
        description="The source's time of the whole work, in hours.",
        examples=[8.21],
    )
    spread_hours: Positive | None = Field(
        None, description="Spread of the source's runs, in hours.", examples=[0.1]
    )
    runs: PositiveInt | None = Field(None, description="Number of the source's runs.", examples=[5])
    steps_per_epoch: PositiveInt | None = Field(
        None, description="Steps in an epoch.", examples=[390]
    )
    steps: PositiveInt | None = Field(
        None, description="Steps of the whole work.", examples=[64000]
    )
    epochs: Positive | None = Field(None, description="Epochs of the whole work.", examples=[25])
    power_watts: Positive | None = Field(
        None, description="Power of all machines together, in watts.", examples=[1415.78]
    )
    accuracy_percent: Annotated[NonNegative, Field(le=100)] | None = Field(
        None,
        description="Accuracy that the source's training reached, in percent.",
        examples=[91.6],
    )
    accuracy_spread: Positive | None = Field(
        None,
        description="Spread of the accuracies of the source's runs, in percentage points.",
        examples=[0.3],
    )
    framework: Text | None = Field(
        None, description="Framework of the source's training.", examples=["TensorFlow 1.4"]
    )
    claims: Annotated[tuple[Claim, ...], FROM_LIST, distinct(lambda claim: claim.label)] = Field(
        (), description="The source's other values of this row."
    )
    confirmed: bool = Field(True, description="False if we could not check the row in a source.")
    notes: Notes | None = None

    @model_validator(mode="after")
    def _one_time(self) -> Timing:
        times = [self.seconds_per_epoch, self.seconds, self.hours]
        if sum(time is not None for time in times) != 1:
            raise ValueError("should have one of seconds_per_epoch, seconds or hours")
        if self.seconds_per_epoch is not None and self.epochs is None:
            raise ValueError("should have epochs with seconds_per_epoch")
        return self

    @property
    def total_seconds(self) -> Decimal:
        """Duration of the whole work in seconds, as the source states it."""
        return self._total(self._source_time)

    @property
    def total_seconds_range(self) -> tuple[Decimal, Decimal]:
        """The least and the greatest time of the whole work, in seconds.

        Every time between them rounds to the time that the source states.
        """
        half = half_unit(self._source_time)
        return self._total(self._source_time - half), self._total(self._source_time + half)

    @property
    def total_steps(self) -> Decimal | None:
        """Number of steps of the whole work; None if the source does not state it."""
        if self.steps is not None:
            return Decimal(self.steps)
        if self.steps_per_epoch is not None and self.epochs is not None:
            return self.steps_per_epoch * self.epochs
        return None

    @property
    def _source_time(self) -> Decimal:
        return self.seconds_per_epoch or self.seconds or self.hours or Decimal(0)

    def _total(self, time: Decimal) -> Decimal:
        if self.seconds_per_epoch is not None and self.epochs is not None:
            return time * self.epochs
        return time if self.seconds is not None else time * SECONDS_PER_HOUR


class Remark(Spec):
    """A statement that the source makes outside its table, and how we interpret it."""

    said: Text = Field(description="The source's statement, in our words.")
    ours: Text | None = Field(None, description="Our reading of it.")
    price: Identifier | None = Field(
        None, description="The price plan made from it, by id in prices/."
    )
    hardware: Identifier | None = Field(
        None,
        description="The machine that it is about, if no price is known, by id in hardware/.",
    )
    model: Identifier | None = Field(
        None, description="The model that it is about, by its id in models/."
    )
    confirmed: bool = Field(True, description="False if we could not check it in a source.")


class Published(NamedSpec):
    """A source's table of measurements and claims."""

    source_id: Identifier | None = Field(
        None,
        description=(
            "The name of the source, equal for tables that share a page; the id by default."
        ),
        examples=["malta-2019"],
    )
    title: Text = Field(description="The title of the source.")
    authors: Text = Field(description="Authors of the source.")
    year: Annotated[int, Field(ge=1950, le=2100)] = Field(
        description="Year of publication.", examples=[2019]
    )
    workload: Text = Field(description="The work that was run, in words.")
    model: Identifier | None = Field(
        None,
        description="The model, by id in models/, if the catalogue has it.",
        examples=["cifar-resnet44"],
    )
    source: Source
    as_of: dt.date = Field(description="The day of the source.", examples=["2019-12-01"])
    timings: Annotated[tuple[Timing, ...], FROM_LIST, distinct(lambda timing: timing.id)] = Field(
        (), description="The rows of the source's table."
    )
    claims: Annotated[tuple[Claim, ...], FROM_LIST, distinct(lambda claim: claim.label)] = Field(
        (), description="The source's values that belong to no row."
    )
    remarks: Annotated[tuple[Remark, ...], FROM_LIST] = Field(
        (), description="Further statements of the source, outside its table."
    )
    notes: Notes | None = None
    unconfirmed: Unconfirmed = ()

    @model_validator(mode="after")
    def _has_figures(self) -> Published:
        if not self.timings and not self.claims:
            raise ValueError("should have at least one of [[timings]] and [[claims]]")
        return self

    @property
    def page(self) -> str:
        """The id of the page on which the site shows the source."""
        return self.source_id or self.id


class ObservationTable(NamedSpec):
    """The source of a table of measured rates.

    It also states what the source's licence demands of pages that show the rows.
    """

    name: Text = Field(description="Name of the source.", examples=["timm results"])
    kind: Literal["examples", "tokens"] = Field(
        "examples",
        description="Unit of the rows' rates: examples of any model, or tokens of language models.",
    )
    table: TableName = Field(
        description="The CSV file with the rows, in this folder.", examples=["timm.csv"]
    )
    columns: Mapping[str, Text] = Field(
        {},
        description="Values of columns that are equal in all rows of a table of tokens.",
        examples=[{"precision": "Q4_K_M"}],
    )
    decoders: TableName | None = Field(
        None,
        description="The file with the forms of the rows' language models, in this folder.",
        examples=["decoders.csv"],
    )
    machines: TableName | None = Field(
        None,
        description="The file with the processors of the rows' machines, in this folder.",
        examples=["sparecores-machines.csv"],
    )
    profiles: TableName | None = Field(
        None,
        description=(
            "The file with the arithmetic of its models' graphs, by model and size, in this folder."
        ),
        examples=["timm-profiles.csv"],
    )
    tuned: bool = Field(
        False,
        description="Whether vendors tuned the programs for each device, as in MLPerf.",
    )
    cpus: Mapping[str, PositiveInt] = Field(
        {},
        description="Number of threads of each CPU that the rows name as accelerator.",
        examples=[{"i9_10940x": 28}],
    )
    licence: Text = Field(
        description="Licence of the rows, as an SPDX identifier.",
        examples=["Apache-2.0"],
    )
    notice: Text | None = Field(
        None, description="Text that must be shown with its rows: trademarks, terms."
    )
    retrieved: date = Field(description="The day on which the rows were read.")
    source: Source
    notes: Notes | None = None
