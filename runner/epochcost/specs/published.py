"""Specs of published sources: measurements, claims, and tables of measured speeds."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import model_validator

from epochcost.specs.base import (
    Array,
    Identifier,
    PastDay,
    PastYear,
    Percentage,
    Positive,
    PositiveInt,
    SourcedSpec,
    Spec,
    TableName,
    Text,
    distinct,
    key,
    matching,
    optional,
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
# The digits that the source prints, so that our number can be compared at that precision.
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
    """A number that a source states, and that we compute again from a row of the source's table.

    With ``shown = "drawn"``, the source shows the number in a chart and publishes the chart's data.
    With ``relation = "at-least"``, the source only says that the true number is at least this
    number.
    """

    label: Text = key("Name of the quantity that the value states.", "cost of 12 epochs")
    printed: Printed = key("The digits that the source shows, in quotes.", "4.3")
    unit: Unit = key("The unit of the value.")
    price: Identifier | None = optional("Price plan to use instead of the row's, by id in prices/.")
    relation: Literal["equal", "at-least"] = key(
        "Whether our number should equal the source's, or be at least as large.", default="equal"
    )
    shown: Literal["printed", "drawn", "derived"] = key(
        "Whether the source prints or draws the value, or figures that imply it.", default="printed"
    )
    confirmed: bool = key("False if we could not check the value in a source.", default=True)
    differs: Text | None = optional("Why our number differs at the printed precision, if it does.")

    @property
    def value(self) -> Decimal:
        """The printed number; its digits show its precision."""
        return Decimal(self.printed.replace(",", ""))


class Timing(Spec):
    """A row of a source's table: the time and the price of a workload on ``count`` machines.

    A row has one of ``seconds_per_epoch``, ``seconds`` and ``hours``. We assume that the source
    rounded this time to the last digit that it states.
    """

    id: Identifier = key("The name by which claims of other rows refer to this row.", "p3.2xlarge")
    name: Text | None = optional("The row's name in the source.", "AWS p3.2xlarge")
    hardware: Identifier = key("The machine, by its id in hardware/.", "p3.2xlarge")
    count: PositiveInt = key("Number of machines.", 1, default=1)
    price: Identifier | None = optional(
        "Price of the machine, by the id of a plan in prices/.", "p3.2xlarge-on-demand-2017-11"
    )
    batch_size: PositiveInt | None = optional("Examples in a step.", 128)
    seconds_per_epoch: Positive | None = optional("The source's time of one epoch, in seconds.", 46)
    seconds: Positive | None = optional("The source's time of the whole job, in seconds.", 428)
    hours: Positive | None = optional("The source's time of the whole job, in hours.", 8.21)
    spread_hours: Positive | None = optional("Spread of the source's runs, in hours.", 0.1)
    runs: PositiveInt | None = optional("Number of the source's runs.", 5)
    steps_per_epoch: PositiveInt | None = optional("Steps in an epoch.", 390)
    steps: PositiveInt | None = optional("Steps of the whole job.", 64000)
    epochs: Positive | None = optional("Epochs of the whole job.", 25)
    power_watts: Positive | None = optional("Power of all machines together, in watts.", 1415.78)
    accuracy_percent: Percentage | None = optional("Accuracy of this training, in percent.", 91.6)
    accuracy_spread: Positive | None = optional(
        "Spread of the accuracies of the source's runs, in percentage points.", 0.3
    )
    framework: Text | None = optional("Framework of the source's training.", "TensorFlow 1.4")
    claims: Annotated[Array[Claim], distinct(lambda claim: claim.label)] = key(
        "Further values that the source states for this row.", default=()
    )
    confirmed: bool = key("False if we could not check the row in a source.", default=True)
    notes: Text | None = optional("Further remarks for readers.")

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
        """Duration of the whole job in seconds, as the source states it."""
        return self._total(self._source_time)

    @property
    def total_seconds_range(self) -> tuple[Decimal, Decimal]:
        """The least and the greatest seconds of the whole job that round to the source's time."""
        half = half_unit(self._source_time)
        return self._total(self._source_time - half), self._total(self._source_time + half)

    @property
    def total_steps(self) -> Decimal | None:
        """Number of steps of the whole job; None if the source does not determine the number."""
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
    """A statement that the source makes outside its table, and our interpretation."""

    said: Text = key("The source's statement, in our words.")
    ours: Text | None = optional("Our interpretation of the statement.")
    price: Identifier | None = optional("The resulting price plan, by id in prices/.")
    hardware: Identifier | None = optional("The machine, by id in hardware/, if no price is known.")
    model: Identifier | None = optional("The model of the statement, by id in models/.")
    confirmed: bool = key("False if we could not check the statement in a source.", default=True)


class Published(SourcedSpec):
    """A source's table of measurements and claims."""

    source_id: Identifier | None = optional(
        "Name of the source; tables with the same name share a page. Default: the id.", "malta-2019"
    )
    title: Text = key("The title of the source.")
    authors: Text = key("Authors of the source.")
    year: PastYear = key("Year of publication.", 2019)
    workload: Text = key("The job that the source ran, described in words.")
    model: Identifier | None = optional("The model's id in models/, if any.", "cifar-resnet44")
    as_of: PastDay = key("The day of the source.", "2019-12-01")
    timings: Annotated[Array[Timing], distinct(lambda timing: timing.id)] = key(
        "The rows of the source's table.", default=()
    )
    claims: Annotated[Array[Claim], distinct(lambda claim: claim.label)] = key(
        "The source's values that belong to no row.", default=()
    )
    remarks: Array[Remark] = key("Further statements of the source, outside its table.", default=())

    @model_validator(mode="after")
    def _has_figures(self) -> Published:
        if not self.timings and not self.claims:
            raise ValueError("should have at least one of [[timings]] and [[claims]]")
        return self

    @property
    def page(self) -> str:
        """The id of the site's page that shows the source."""
        return self.source_id or self.id


class ObservationTable(SourcedSpec):
    """The source of a table of measured speeds."""

    name: Text = key("Name of the source.", "timm results")
    kind: Literal["examples", "tokens"] = key(
        "What the rows' rates count; tokens are those of language models.", default="examples"
    )
    table: TableName = key("The CSV file with the rows, in this folder.", "timm.csv")
    columns: Mapping[str, Text] = key(
        "For a table of tokens: columns with the same value in all rows, and this value.",
        {"precision": "Q4_K_M"},
        default={},
    )
    decoders: TableName | None = optional(
        "File with the sizes of the language models, in this folder.", "decoders.csv"
    )
    machines: TableName | None = optional(
        "File with the processors of the machines, in this folder.", "sparecores-machines.csv"
    )
    profiles: TableName | None = optional(
        "File with the operations of graphs by input size, in this folder.", "timm-profiles.csv"
    )
    tuned: bool = key("Whether vendors tuned the programs for each device (MLPerf).", default=False)
    cpus: Mapping[str, PositiveInt] = key(
        "Threads of each CPU that rows list as an accelerator.", {"i9_10940x": 28}, default={}
    )
    licence: Text = key("Licence of the rows, as an SPDX identifier.", "Apache-2.0")
    notice: Text | None = optional("Text that must be shown with the rows: trademarks, terms.")
    retrieved: PastDay = key("The day on which the rows were read.")
