"""How a printed figure is recomputed: a small closed set of formulas, each by its name.

What they compute is `cost.claims`' business. ``UNITS`` says in which units each one answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import Field

from epochcost.specs.base import FROM_LIST, Identifier, Positive, PositiveInt, Spec, Text
from epochcost.specs.terms import BillingName

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
_MONEY = ("USD", "US cents", "thousand USD", "million USD")
_TIME = ("seconds", "hours")


class Bill(Spec):
    """The row's time times price times machines, for ``epochs`` of it or for all."""

    name: Literal["bill"] = Field(description="The formula.")
    epochs: PositiveInt | None = Field(
        None, description="Epochs of the row; all where it is left out.", examples=[12]
    )
    billing: BillingName = Field("prorated", description="How the row's time becomes billed time.")
    price: Identifier | None = Field(
        None, description="What replaces the row's own price, by its id in prices/."
    )


class Duration(Spec):
    """The row's time, for ``epochs`` of it or for all."""

    name: Literal["duration"] = Field(description="The formula.")
    epochs: PositiveInt | None = Field(
        None, description="Epochs of the row; all where it is left out.", examples=[12]
    )


class StepTime(Spec):
    """The row's time over its steps."""

    name: Literal["step-time"] = Field(description="The formula.")


class Against(Spec):
    """The row beside another, ``to``: its time or its prorated bill over that row's.

    ``speed-up`` is the other way round: how many times faster the row is.
    """

    name: Literal["relative-time", "relative-cost", "speed-up"] = Field(description="The formula.")
    to: Identifier = Field(description="The row that this one is compared with, by its id.")


class Energy(Spec):
    """The row's power over its time, by the assumptions of a source (`cost.energy`)."""

    name: Literal["energy", "emissions"] = Field(description="The formula.")
    assumptions: Literal["strubell-2019"] = Field(
        description="Whose assumptions on power and emissions apply."
    )


class Examples(Spec):
    """The row's steps times its batch size: how many examples it saw."""

    name: Literal["examples"] = Field(description="The formula.")


class RateDrop(Spec):
    """When the learning rate first drops: after ``epochs`` of ``examples_per_epoch``, whole steps.

    ``steps-over-rate-drop`` is the row's steps over that number of steps.
    """

    name: Literal["rate-drop", "steps-over-rate-drop"] = Field(description="The formula.")
    epochs: PositiveInt = Field(
        description="Epochs before the learning rate first drops.", examples=[82]
    )
    examples_per_epoch: PositiveInt = Field(description="Examples in an epoch.", examples=[50000])


class Factor(Spec):
    """One number of a product, and what it is."""

    label: Text = Field(description="What the number is.", examples=["runs of each"])
    value: Positive = Field(description="The number.", examples=[10])


class Product(Spec):
    """Numbers that the source gives, multiplied, and divided by others."""

    name: Literal["product"] = Field(description="The formula.")
    factors: Annotated[tuple[Factor, ...], FROM_LIST, Field(min_length=1)] = Field(
        description="What is multiplied."
    )
    divisors: Annotated[tuple[Factor, ...], FROM_LIST] = Field(
        (), description="What it is divided by."
    )


class NotGiven(Spec):
    """The source does not say what the figure follows from: it cannot be recomputed."""

    name: Literal["not-given"] = Field(description="The formula.")


Formula = Annotated[
    Bill | Duration | StepTime | Against | Energy | Examples | RateDrop | Product | NotGiven,
    Field(discriminator="name"),
]

_ANY: tuple[str, ...] = ()
# The units that a formula's answer may stand in; empty: any, for the source decides.
UNITS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "bill": _MONEY,
        "duration": _TIME,
        "step-time": _TIME,
        "relative-time": ("ratio", "percent"),
        "relative-cost": ("ratio", "percent"),
        "speed-up": ("ratio", "percent"),
        "energy": ("kWh",),
        "emissions": ("lb CO2e",),
        "examples": ("million examples",),
        "rate-drop": ("steps",),
        "steps-over-rate-drop": ("ratio",),
        "product": _ANY,
        "not-given": _ANY,
    }
)
