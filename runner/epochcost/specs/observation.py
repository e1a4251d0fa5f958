"""Tables of times that others measured: their source, licence and file.

``predict.rates`` reads the rows from a CSV file in the spec's folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Annotated

from pydantic import Field

from epochcost.specs.base import NamedSpec, Notes, PositiveInt, Source, Text, matching

TableName = Annotated[
    str, matching(r"[a-z0-9][a-z0-9._-]{0,79}\.csv", "the name of a .csv file beside the spec")
]


class ObservationTable(NamedSpec):
    """The source of a table, and the demands of its licence on whoever shows its rows."""

    name: Text = Field(description="What people call the source.", examples=["timm results"])
    table: TableName = Field(
        description="The file with the rows, beside this one.", examples=["timm.csv"]
    )
    profiles: TableName | None = Field(
        None,
        description=(
            "The file with what the graphs of its models ask for, by model and size, beside this "
            "one."
        ),
        examples=["timm-profiles.csv"],
    )
    tuned: bool = Field(
        False,
        description="Whether vendors tuned the programs for each device, as in MLPerf.",
    )
    cpus: Mapping[str, PositiveInt] = Field(
        {},
        description="The vCPUs of each CPU that the rows name as accelerator: its threads.",
        examples=[{"i9_10940x": 28}],
    )
    licence: Text = Field(
        description="Under which the rows are published, as an SPDX identifier.",
        examples=["Apache-2.0"],
    )
    notice: Text | None = Field(
        None, description="What must be shown beside its rows: trademarks, terms."
    )
    retrieved: date = Field(description="The day on which the rows were read.")
    source: Source
    notes: Notes | None = None
