"""Replays: trainings on spot machines, priced with a trace of past prices in the spec's folder."""

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
    matching(r"[a-z0-9][a-z0-9._-]{0,79}\.csv", "the name of a .csv file in the spec's folder"),
]


class ReplayedJob(NamedSpec):
    """A training on a spot machine whose prices and availability come from a trace of the past.

    It saves checkpoints and may move between zones.
    """

    name: Text = Field(description="Name for people.", examples=["Three zones, made"])
    trace: TraceName = Field(
        description="The CSV file with prices and availability, in this folder.",
        examples=["made-three-zones.csv"],
    )
    model: Identifier = Field(description="The model to train, by id.", examples=["resnet50"])
    hardware: Identifier = Field(
        description="The machine whose step time is used, by id.", examples=["a2-highgpu-1g"]
    )
    deadline_hours: Positive | None = Field(
        None, description="Longest time from start to end, in hours.", examples=[48]
    )
    state_gb: Positive | None = Field(
        None,
        description="Size of a checkpoint, in GB; parameters and optimizer by default.",
        examples=[1.3],
    )
    disk_gb_per_second: Positive = Field(Decimal("0.5"), description="GB saved in a second.")
    network_gb_per_second: Positive = Field(
        Decimal("0.1"), description="GB moved to another zone in a second."
    )
    transfer_price_per_gb: NonNegative = Field(
        Decimal(0), description="Price of moving a GB to another zone."
    )
    restart_seconds: NonNegative = Field(
        Decimal(300), description="Time from a start to the first step, in seconds."
    )
    interval_seconds: Positive | None = Field(
        None, description="Work between checkpoints, in seconds; Daly's optimum by default."
    )
    source: Source
    licence: Text | None = Field(
        None, description="The trace's licence, as an SPDX identifier if it has one."
    )
    notes: Notes | None = None
