"""The terms of a rented plan beside its hourly amount: parts, commitment, starts, interruptions."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field, model_validator

from epochcost.specs.base import (
    DISTINCT,
    FROM_LIST,
    NonNegative,
    Positive,
    Share,
    Spec,
    Text,
    matching,
)

PriceFile = Annotated[
    str,
    matching(
        r"[A-Za-z0-9][A-Za-z0-9._-]*\.csv",
        "the name of a .csv file beside the spec, without a path",
    ),
]


# What premiums call the hourly parts that are no components: `amount` and `[commitment]`.
COMPUTE = "compute"
COMMITTED = "commitment"


class Component(Spec):
    """A part of a price: an amount for each of ``count`` units, or a premium on other parts.

    ``per`` is what an amount is for: an hour of use, a gigabyte-month (of 730 hours, as EC2 and
    GCE count them) kept while in use, a gigabyte moved, whose number the usage says, or a run,
    whatever it lasts. A premium of ``percent`` is on the hourly parts whose labels ``of`` names
    (``compute`` is the plan's ``amount``, ``commitment`` its commitment); all hourly parts where it
    names none. No premium is on a premium.
    """

    label: Text
    amount: Positive | None = None
    count: Positive = Decimal(1)
    per: Literal["hour", "gb-month", "gb", "run"] = "hour"
    percent: NonNegative | None = None
    of: Annotated[tuple[Text, ...], FROM_LIST, DISTINCT] = ()

    @model_validator(mode="after")
    def _amount_or_percent(self) -> Component:
        if (self.amount is None) == (self.percent is None):
            raise ValueError("should have either amount or percent")
        if self.of and self.percent is None:
            raise ValueError("should have percent with of, which names what the premium is on")
        if self.count != 1 and (self.percent is not None or self.per == "gb"):
            raise ValueError("should have no count with percent or per gb: neither is of units")
        if self.percent is not None and self.per != "hour":
            raise ValueError("should have no per with percent: premiums are on hourly parts")
        return self


class Commitment(Spec):
    """A machine paid for through a term, used or not.

    ``upfront`` is paid at once and ``hourly`` for every hour of the term, whose months have 730
    hours; an hour of use costs both, spread over the share ``utilisation`` of the term that is
    used.
    """

    term_months: Positive
    payment: Literal["no-upfront", "partial-upfront", "all-upfront"]
    upfront: NonNegative = Decimal(0)
    hourly: NonNegative = Decimal(0)
    utilisation: Annotated[Share, Field(gt=0)] = Decimal(1)

    @model_validator(mode="after")
    def _payments_as_named(self) -> Commitment:
        paid = {
            "no-upfront": self.upfront == 0 and self.hourly > 0,
            "partial-upfront": self.upfront > 0 and self.hourly > 0,
            "all-upfront": self.upfront > 0 and self.hourly == 0,
        }
        if not paid[self.payment]:
            raise ValueError(f"should have upfront and hourly amounts that fit {self.payment}")
        return self


class Start(Spec):
    """What a start takes: its time, whether it is billed, and how often it fails for a charge.

    A start that fails takes the time too and costs ``failure_charge`` and nothing else; it is tried
    again until one succeeds.
    """

    seconds: NonNegative = Decimal(0)
    billed: bool = True
    failure_probability: Annotated[Share, Field(lt=1)] = Decimal(0)
    failure_charge: NonNegative = Decimal(0)


class Interruptions(Spec):
    """How often the provider takes the machine back, and what a job does about it.

    Interruptions come at random with ``rate_per_hour``. ``checkpoint_seconds`` is what saving
    takes, ``checkpoint_interval_seconds`` the work between saves (Young's and Daly's optimum where
    it is not given), ``restart_seconds`` the billed time beyond a start until work goes on.
    """

    rate_per_hour: NonNegative
    notice_seconds: NonNegative = Decimal(0)
    checkpoint_seconds: NonNegative = Decimal(0)
    checkpoint_interval_seconds: Positive | None = None
    restart_seconds: NonNegative = Decimal(0)
    interrupted_period_free: bool = False


class Credit(Spec):
    """Money that the provider gives to new customers, used up before any is paid."""

    amount: Positive
    label: Text = "free credit"
