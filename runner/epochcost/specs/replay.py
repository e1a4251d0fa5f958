"""Replays: a training on spot machines of the past, over a trace in the spec's folder."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

from pydantic import Field

from epochcost.specs.base import (
    Identifier,
    NamedSpec,
    NonNegative,
    Notes,
    Positive,
    Source,
    Text,
    matching,
)

TraceName = Annotated[
    str,
    matching(r"[a-z0-9][a-z0-9._-]{0,79}\.csv", "the name of a .csv file beside the spec"),
]


class ReplayedJob(NamedSpec):
    """A training of the past on a machine, over a trace, with its saves and moves."""

    name: Text = Field(description="What people call it.", examples=["Three zones, made"])
    trace: TraceName = Field(
        description="The file with prices and availability, beside this one.",
        examples=["made-three-zones.csv"],
    )
    model: Identifier = Field(description="What is trained, by its id.", examples=["resnet50"])
    hardware: Identifier = Field(
        description="The machine whose time is taken, by its id.", examples=["a2-highgpu-1g"]
    )
    deadline_hours: Positive | None = Field(
        None, description="Time on the wall at most, in hours.", examples=[48]
    )
    state_gb: Positive | None = Field(
        None,
        description="What is saved, in GB; parameters and optimizer where it is left out.",
        examples=[1.3],
    )
    disk_gb_per_second: Positive = Field(Decimal("0.5"), description="GB saved in a second.")
    network_gb_per_second: Positive = Field(
        Decimal("0.1"), description="GB moved to another zone in a second."
    )
    transfer_price_per_gb: NonNegative = Field(
        Decimal(0), description="What it costs to move a GB to another zone."
    )
    restart_seconds: NonNegative = Field(
        Decimal(300), description="From a start to work, in seconds."
    )
    interval_seconds: Positive | None = Field(
        None, description="Work between saves, in seconds; Daly's optimum where it is left out."
    )
    source: Source
    licence: Text | None = Field(
        None, description="The trace's licence, by its SPDX name where it has one."
    )
    notes: Notes | None = None
