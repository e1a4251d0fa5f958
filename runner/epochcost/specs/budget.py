"""Budgets: what a study's models may cost at most, which `epochcost check --budgets` holds."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from epochcost.specs.base import FROM_LIST, Identifier, Positive, Spec
from epochcost.specs.currency import Currency

BudgetGoal = Literal["epoch", "full-training", "million-inferences"]


class BudgetLimit(Spec):
    """One demand: ``goal`` of ``model`` costs ``at_most`` so much, in ``currency``.

    Without ``hardware`` and ``price`` the cheapest machine and plan count. With
    ``accuracy_percent`` only trainings count that a source says to reach it.
    """

    model: Identifier = Field(
        description="The model, by its id; one of the study's.", examples=["mnist-cnn"]
    )
    goal: BudgetGoal = Field(
        description="What is paid for: an epoch, all epochs, or a million inferences.",
        examples=["full-training"],
    )
    at_most: Positive = Field(description="What it may cost, in the currency.", examples=[1])
    currency: Currency = Field(
        "USD", description="The currency, by its three letters.", examples=["USD"]
    )
    accuracy_percent: Annotated[Positive, Field(le=100)] | None = Field(
        None,
        description="What the training should reach, by its source, in percent.",
        examples=[91],
    )
    hardware: Identifier | None = Field(
        None,
        description="The machine, by its id; the cheapest where it is left out.",
        examples=["p2.xlarge"],
    )
    price: Identifier | None = Field(
        None,
        description="The price plan, by its id; the cheapest where it is left out.",
        examples=["p2.xlarge-on-demand-2026-07"],
    )


class Budget(Spec):
    """What the study's models may cost; `epochcost check --budgets` fails where they cost more."""

    limits: Annotated[tuple[BudgetLimit, ...], FROM_LIST, Field(min_length=1)] = Field(
        description="One demand each; a cost that is unknown keeps none."
    )
