"""Published figures recomputed from their rows' inputs, compared at the printed precision.

What a formula computes stands in `cost.formulas`; here it is rounded, compared and told apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from itertools import product
from typing import Literal

from epochcost.cost.formulas import Job, evaluate
from epochcost.cost.money import exact_arithmetic
from epochcost.errors import InputError
from epochcost.specs.formula import Against, NotGiven
from epochcost.specs.price import Price
from epochcost.specs.published import Claim, Published, Timing, half_unit

Agreement = Literal["equal", "within rounding", "differs", "not recomputed"]


@dataclass(frozen=True, slots=True)
class Figure:
    """Our figure in the claim's unit: from the times as given, and from all that round to them."""

    exact: Decimal
    low: Decimal
    high: Decimal


@dataclass(frozen=True, slots=True)
class ClaimCheck:
    """A claim beside our figure, or why there is none (``problem``, a sentence for people)."""

    claim: Claim
    figure: Figure | None
    problem: str | None = None

    @property
    def ours(self) -> Decimal | None:
        """Our figure rounded as the source prints; halves round up, as print does."""
        if self.figure is None:
            return None
        return self.figure.exact.quantize(self.claim.value, rounding=ROUND_HALF_UP)

    @property
    def equal(self) -> bool:
        """Whether the source is right at its printed precision, by our figure."""
        if self.ours is None:
            return False
        if self.claim.relation == "at-least":
            return self.ours >= self.claim.value
        return self.ours == self.claim.value

    @property
    def agreement(self) -> Agreement:
        """The outcome; within rounding: equal for some time that the source may have rounded."""
        if self.figure is None:
            return "not recomputed"
        if self.equal:
            return "equal"
        half = half_unit(self.claim.value)
        near = self.figure.low - half <= self.claim.value <= self.figure.high + half
        return "within rounding" if near else "differs"

    @property
    def explained(self) -> bool:
        """Whether a reason is given if and only if the figures are not equal."""
        return self.equal == (self.claim.differs is None)


@dataclass(frozen=True, slots=True)
class CheckedRow:
    """The checks of one row; ``timing`` None for the claims of no row."""

    timing: Timing | None
    checks: tuple[ClaimCheck, ...]


def recompute(published: Published, prices: Mapping[str, Price]) -> tuple[CheckedRow, ...]:
    """Every figure of a published table, row by row, recomputed from the row's inputs."""
    rows = {timing.id: timing for timing in published.timings}
    checked = [
        CheckedRow(timing, tuple(_check(claim, timing, rows, prices) for claim in timing.claims))
        for timing in published.timings
    ]
    loose = tuple(_check(claim, None, rows, prices) for claim in published.claims)
    return (*checked, CheckedRow(None, loose)) if loose else tuple(checked)


def _check(
    claim: Claim, timing: Timing | None, rows: Mapping[str, Timing], prices: Mapping[str, Price]
) -> ClaimCheck:
    if isinstance(claim.formula, NotGiven):
        return ClaimCheck(claim, None, "the source does not say what it follows from")
    reference = rows[claim.formula.to] if isinstance(claim.formula, Against) else None
    try:
        with exact_arithmetic():
            return ClaimCheck(claim, _figure(claim, timing, reference, prices))
    except InputError as error:
        return ClaimCheck(claim, None, str(error))


def _figure(
    claim: Claim, timing: Timing | None, reference: Timing | None, prices: Mapping[str, Price]
) -> Figure:
    """The figure at the times as given, and its extremes over all times that round to them."""

    def at(own: Decimal | None, other: Decimal | None) -> Decimal:
        beside = Job(reference, other, prices) if reference else None
        return evaluate(claim, Job(timing, own, prices), beside)

    given = at(_seconds(timing), _seconds(reference))
    ends = [at(*times) for times in product(_rounded_to(timing), _rounded_to(reference))]
    return Figure(given, min(ends), max(ends))


def _seconds(timing: Timing | None) -> Decimal | None:
    return timing.total_seconds if timing else None


def _rounded_to(timing: Timing | None) -> tuple[Decimal | None, ...]:
    return timing.total_seconds_range if timing else (None,)
