"""Published figures: what a source measured and claimed, for machines that we do not have."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field, model_validator

from epochcost.specs.base import (
    FROM_LIST,
    Identifier,
    NamedSpec,
    NonNegative,
    Positive,
    PositiveInt,
    Source,
    Spec,
    Text,
    Unconfirmed,
    distinct,
    matching,
)
from epochcost.specs.formula import UNITS, Against, Bill, Formula, Unit
from epochcost.specs.wording import listed
from epochcost.units import SECONDS_PER_HOUR

# The digits that a source printed, so that our figure can be compared at that precision.
Printed = Annotated[
    str,
    matching(
        r"([0-9]{1,15}|[0-9]{1,3}(,[0-9]{3}){1,4})(\.[0-9]{1,15})?",
        'printed digits in quotes, such as "4.3" or "12,571"',
    ),
]


def half_unit(value: Decimal) -> Decimal:
    """Half of a number's last digit: what rounding may have taken off or added."""
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int), "specs hold finite numbers"
    return Decimal(5).scaleb(exponent - 1)


class Claim(Spec):
    """A figure of the source, and the formula that reproduces it from the row's inputs.

    ``shown`` says how the source shows it: printed as digits; drawn in a chart whose data are the
    source's; or not at all, ``derived`` from what it gives. ``relation`` is ``at-least`` where the
    source only says that the figure is more. ``differs`` is why ours is another at the printed
    precision, and is given then only. ``confirmed = false`` marks a figure that stands in no source
    that we could read.
    """

    label: Text
    printed: Printed
    unit: Unit
    formula: Formula
    relation: Literal["equal", "at-least"] = "equal"
    shown: Literal["printed", "drawn", "derived"] = "printed"
    confirmed: bool = True
    differs: Text | None = None

    @model_validator(mode="after")
    def _unit_of_formula(self) -> Claim:
        units = UNITS[self.formula.name]
        if units and self.unit not in units:
            raise ValueError(
                f"should be in {listed(units)}, which {self.formula.name} makes, got {self.unit}"
            )
        return self

    @property
    def value(self) -> Decimal:
        """The printed digits as a number, with their precision."""
        return Decimal(self.printed.replace(",", ""))


class Timing(Spec):
    """One row of a source's table: a workload on ``count`` machines at a price.

    The time is given as the source gives it: of one epoch, or of all the work in seconds or hours.
    It is taken to be rounded to its last digit. ``steps`` are of all the work. ``spread_hours`` and
    ``accuracy_spread`` are the source's, over its ``runs``. ``power_watts`` is of all machines.
    """

    id: Identifier
    name: Text | None = None
    hardware: Identifier
    count: PositiveInt = 1
    price: Identifier | None = None
    batch_size: PositiveInt | None = None
    seconds_per_epoch: Positive | None = None
    seconds: Positive | None = None
    hours: Positive | None = None
    spread_hours: Positive | None = None
    runs: PositiveInt | None = None
    steps_per_epoch: PositiveInt | None = None
    steps: PositiveInt | None = None
    epochs: Positive | None = None
    power_watts: Positive | None = None
    accuracy_percent: Annotated[NonNegative, Field(le=100)] | None = None
    accuracy_spread: Positive | None = None
    framework: Text | None = None
    claims: Annotated[tuple[Claim, ...], FROM_LIST, distinct(lambda claim: claim.label)] = ()
    confirmed: bool = True
    notes: Text | None = None

    @model_validator(mode="after")
    def _one_time(self) -> Timing:
        given = [self.seconds_per_epoch, self.seconds, self.hours]
        if sum(time is not None for time in given) != 1:
            raise ValueError("should have one of seconds_per_epoch, seconds or hours")
        if self.seconds_per_epoch is not None and self.epochs is None:
            raise ValueError("should have epochs with seconds_per_epoch")
        if self.price is None and any(_unpriced(claim) for claim in self.claims):
            raise ValueError("should have a price, or one in the formula of each bill")
        return self

    @property
    def total_seconds(self) -> Decimal:
        """The time of all the work."""
        return self._total(self._given)

    @property
    def total_seconds_range(self) -> tuple[Decimal, Decimal]:
        """The times of all the work that the source may have rounded to the one it gives."""
        half = half_unit(self._given)
        return self._total(self._given - half), self._total(self._given + half)

    @property
    def total_steps(self) -> Decimal | None:
        """The steps of all the work, where the source tells."""
        if self.steps is not None:
            return Decimal(self.steps)
        if self.steps_per_epoch is not None and self.epochs is not None:
            return self.steps_per_epoch * self.epochs
        return None

    @property
    def _given(self) -> Decimal:
        return self.seconds_per_epoch or self.seconds or self.hours or Decimal(0)

    def _total(self, given: Decimal) -> Decimal:
        if self.seconds_per_epoch is not None and self.epochs is not None:
            return given * self.epochs
        return given if self.seconds is not None else given * SECONDS_PER_HOUR


class Remark(Spec):
    """Something that the source says beside its table, and what we make of it.

    ``price`` names the plan that states it as data, ``model`` the model that it is about.
    """

    said: Text
    ours: Text | None = None
    price: Identifier | None = None
    model: Identifier | None = None
    confirmed: bool = True


class Published(NamedSpec):
    """One table of a source; ``model`` links it to a spec where we have the model.

    Tables of one ``source_id`` stand on one page. ``claims`` are figures of no row.
    """

    source_id: Identifier | None = None
    title: Text
    authors: Text
    year: Annotated[int, Field(ge=1950, le=2100)]
    workload: Text
    model: Identifier | None = None
    source: Source
    as_of: dt.date
    timings: Annotated[tuple[Timing, ...], FROM_LIST, distinct(lambda timing: timing.id)] = ()
    claims: Annotated[tuple[Claim, ...], FROM_LIST, distinct(lambda claim: claim.label)] = ()
    remarks: Annotated[tuple[Remark, ...], FROM_LIST] = ()
    notes: Text | None = None
    unconfirmed: Unconfirmed = ()

    @model_validator(mode="after")
    def _has_figures(self) -> Published:
        if not self.timings and not self.claims:
            raise ValueError("should have at least one of [[timings]] and [[claims]]")
        return self

    @model_validator(mode="after")
    def _rows_that_claims_need(self) -> Published:
        if any(claim.formula.name not in _ROWLESS for claim in self.claims):
            raise ValueError(f"should have claims outside of timings by {listed(_ROWLESS)} only")
        known = {timing.id for timing in self.timings}
        for _, claim in self.rows_of_claims():
            if isinstance(claim.formula, Against) and claim.formula.to not in known:
                raise ValueError(
                    f"should compare rows of this table, got {claim.formula.to} in {claim.label}"
                )
        return self

    @property
    def page(self) -> str:
        """The id of the source's page."""
        return self.source_id or self.id

    def rows_of_claims(self) -> Iterator[tuple[Timing | None, Claim]]:
        """Every claim with its row; None for those of no row."""
        for timing in self.timings:
            for claim in timing.claims:
                yield timing, claim
        for claim in self.claims:
            yield None, claim


_ROWLESS = ("product", "not-given")


def _unpriced(claim: Claim) -> bool:
    formula = claim.formula
    billed = isinstance(formula, Bill) and formula.price is None
    return billed or formula.name == "relative-cost"
