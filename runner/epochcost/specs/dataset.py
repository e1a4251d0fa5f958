"""Data that models learn from: what it is and how much of it, never the data themselves."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from epochcost.specs.base import NamedSpec, PositiveInt, Source, Text, Unconfirmed


class Dataset(NamedSpec):
    """One data set; ``example`` says what one example is, ``shape`` how large it is.

    ``address`` is where people get it; nothing here downloads it.
    """

    name: Text
    example: Text
    shape: Text
    training_examples: PositiveInt
    held_out_examples: PositiveInt | None = None
    classes: Annotated[int, Field(ge=2, le=10**7)] | None = None
    licence: Text | None = None
    address: Text | None = None
    source: Source
    notes: Text | None = None
    unconfirmed: Unconfirmed = ()
