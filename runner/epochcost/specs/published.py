"""Published figures: what a source measured and claimed, for machines that we do not have."""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Literal

from pydantic import Field

from epochcost.specs.base import (
    FROM_LIST,
    Identifier,
    NamedSpec,
    Positive,
    PositiveInt,
    Source,
    Spec,
    Text,
    Unconfirmed,
    distinct,
    matching,
)
from epochcost.specs.billing import BillingName

# The digits that a source printed, so that our figure can be compared at that precision.
Printed = Annotated[
    str, matching(r"[0-9]{1,15}(\.[0-9]{1,15})?", 'printed digits in quotes, such as "4.3"')
]


class Claim(Spec):
    """A cost that the source prints, and the bill that reproduces it.

    ``epochs`` are run in one go and billed by ``billing``; ``printed`` is in ``unit``. ``derived``
    marks a figure that the source does not print but that follows from its time and its price.
    """

    label: Text
    epochs: PositiveInt = 1
    billing: BillingName = "prorated"
    printed: Printed
    unit: Literal["USD", "US cents"]
    derived: bool = False


class Timing(Spec):
    """One row of a source's table: a workload on a machine at a price."""

    id: Identifier
    hardware: Identifier
    price: Identifier
    batch_size: PositiveInt
    seconds_per_epoch: Positive
    steps_per_epoch: PositiveInt | None = None
    epochs: PositiveInt
    framework: Text | None = None
    claims: Annotated[tuple[Claim, ...], FROM_LIST] = ()
    notes: Text | None = None


class Published(NamedSpec):
    """One source's table for one workload; ``model`` links it to a spec where we have the model."""

    title: Text
    authors: Text
    year: Annotated[int, Field(ge=1950, le=2100)]
    workload: Text
    model: Identifier | None = None
    source: Source
    as_of: dt.date
    timings: Annotated[
        tuple[Timing, ...], FROM_LIST, Field(min_length=1), distinct(lambda timing: timing.id)
    ]
    notes: Text | None = None
    unconfirmed: Unconfirmed = ()
