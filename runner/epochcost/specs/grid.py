"""Electricity grids: what a kilowatt-hour emits where, in which year."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from epochcost.specs.base import NamedSpec, NonNegative, Positive, Source, Text, Unconfirmed


class Grid(NamedSpec):
    """The carbon intensity of a grid; ``pue`` where the source states one with it.

    ``kg_co2e_per_kwh`` is of electricity at the meter of the building.
    """

    name: Text
    kg_co2e_per_kwh: NonNegative
    pue: Annotated[Positive, Field(ge=1)] | None = None
    year: Annotated[int, Field(ge=1950, le=2100)]
    source: Source
    notes: Text | None = None
    unconfirmed: Unconfirmed = ()
