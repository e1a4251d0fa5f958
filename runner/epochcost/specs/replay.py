"""Replays: trainings on spot machines, priced with a trace of past prices in the spec's folder."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

from epochcost.specs.base import (
    Identifier,
    NamedSpec,
    NonNegative,
    Notes,
    Positive,
    Source,
    Text,
    key,
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

    name: Text = key("Name for people.", "Three zones, made")
    trace: TraceName = key(
        "The CSV file with prices and availability, in this folder.", "made-three-zones.csv"
    )
    model: Identifier = key("The model to train, by id.", "resnet50")
    hardware: Identifier = key("The machine whose step time is used, by id.", "a2-highgpu-1g")
    deadline_hours: Positive | None = key(
        "Longest time from start to end, in hours.", 48, default=None
    )
    state_gb: Positive | None = key(
        "Size of a checkpoint, in GB; parameters and optimizer by default.", 1.3, default=None
    )
    disk_gb_per_second: Positive = key("GB saved in a second.", default=Decimal("0.5"))
    network_gb_per_second: Positive = key(
        "GB moved to another zone in a second.", default=Decimal("0.1")
    )
    transfer_price_per_gb: NonNegative = key(
        "Price of moving a GB to another zone.", default=Decimal(0)
    )
    restart_seconds: NonNegative = key(
        "Time from a start to the first step, in seconds.", default=Decimal(300)
    )
    interval_seconds: Positive | None = key(
        "Work between checkpoints, in seconds; Daly's optimum by default.", default=None
    )
    source: Source
    licence: Text | None = key(
        "The trace's licence, as an SPDX identifier if it has one.", default=None
    )
    notes: Notes | None = None
