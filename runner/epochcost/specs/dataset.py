"""Data that models learn from: what it is and how much of it, never the data themselves."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from epochcost.specs.base import NamedSpec, Notes, PositiveInt, Source, Text, Unconfirmed


class Dataset(NamedSpec):
    """One data set: what an example is and how many there are."""

    name: Text = Field(description="What people call it.", examples=["CIFAR-10"])
    example: Text = Field(
        description="What one example is, in words.",
        examples=["a colour photograph of one of ten things"],
    )
    shape: Text = Field(
        description="How large one example is, in words.", examples=["32 x 32 pixels of 3 channels"]
    )
    training_examples: PositiveInt = Field(description="Examples to learn from.", examples=[50000])
    held_out_examples: PositiveInt | None = Field(
        None, description="Examples to test with.", examples=[10000]
    )
    classes: Annotated[int, Field(ge=2, le=10**7)] | None = Field(
        None, description="Classes, where examples have one.", examples=[10]
    )
    licence: Text | None = Field(
        None, description="The licence, by its SPDX name where it has one.", examples=["MIT"]
    )
    address: Text | None = Field(
        None, description="Where people get it; nothing here downloads it."
    )
    source: Source
    notes: Notes | None = None
    unconfirmed: Unconfirmed = ()
