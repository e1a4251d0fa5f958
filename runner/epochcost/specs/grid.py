"""Electricity grids: what a kilowatt-hour emits where, in which year."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from epochcost.specs.base import NamedSpec, NonNegative, Notes, Positive, Source, Text, Unconfirmed


class Grid(NamedSpec):
    """The carbon intensity of an electricity grid."""

    name: Text = Field(
        description="The country or region that the grid supplies.", examples=["France"]
    )
    kg_co2e_per_kwh: NonNegative = Field(
        description=(
            "What a kilowatt-hour at the building's meter emits, in kg of CO2 equivalent."
        ),
        examples=[0.056],
    )
    pue: Annotated[Positive, Field(ge=1)] | None = Field(
        None,
        description="Power usage effectiveness, where the source states one with the grid.",
        examples=[1.58],
    )
    year: Annotated[int, Field(ge=1950, le=2100)] = Field(
        description="The year that the figure is of.", examples=[2023]
    )
    source: Source
    notes: Notes | None = None
    unconfirmed: Unconfirmed = ()
