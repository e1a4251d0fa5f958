"""Published figures in words: how a figure is recomputed, and whether ours is the source's."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from functools import singledispatch

from epochcost.cost import ClaimCheck
from epochcost.cost.energy import ASSUMPTIONS
from epochcost.specs.formula import (
    Against,
    Bill,
    Duration,
    Energy,
    Examples,
    Factor,
    Formula,
    NotGiven,
    Product,
    RateDrop,
    StepTime,
)
from epochcost.specs.published import Claim
from epochcost.units import plain

_TIMES = "\N{MULTIPLICATION SIGN}"
_BILLED = {
    "prorated": "prorated",
    "per-second": "billed by the second",
    "whole-hour": "billed in whole hours",
}
_OUTCOMES = {
    "equal": "= matches",
    "within rounding": "≈ matches (rounded)",
    "differs": "≠ differs",
    "not recomputed": "? not checked",
}


def agreement_words(check: ClaimCheck) -> str:
    """The outcome with its sign: told apart without colour."""
    if check.equal and check.claim.relation == "at-least":
        return "≥ more"
    return _OUTCOMES[check.agreement]


def ours_words(check: ClaimCheck) -> str:
    """Our figure with up to two digits more than the source prints."""
    if check.figure is None:
        return "—"
    finer = check.figure.exact.quantize(check.claim.value.scaleb(-2), rounding=ROUND_HALF_UP)
    return f"{Decimal(plain(finer)):,f}"


def printed_words(claim: Claim) -> str:
    """The source's digits, with what it says of them."""
    return f"more than {claim.printed}" if claim.relation == "at-least" else claim.printed


@singledispatch
def formula_words(formula: Formula) -> str:
    """How a figure is recomputed, as a phrase."""
    raise TypeError(f"expected a formula of specs.formula, got {formula!r}")


@formula_words.register
def _(formula: Bill) -> str:
    return f"{_worked(formula.epochs)} {_TIMES} price {_TIMES} machines, {_BILLED[formula.billing]}"


@formula_words.register
def _(formula: Duration) -> str:
    return _worked(formula.epochs)


@formula_words.register
def _(_formula: StepTime) -> str:
    return "time of all work ÷ steps"


@formula_words.register
def _(formula: Against) -> str:
    if formula.name == "speed-up":
        return "time of the row compared with ÷ the row's time"
    what = "time" if formula.name == "relative-time" else "prorated cost"
    return f"the row's {what} ÷ that of the row compared with"


@formula_words.register
def _(formula: Energy) -> str:
    assumed = ASSUMPTIONS[formula.assumptions]
    energy = f"{assumed.pue} (PUE) {_TIMES} power {_TIMES} hours"
    if formula.name == "energy":
        return energy
    return f"{assumed.pounds_per_kwh} lb/kWh {_TIMES} {energy}"


@formula_words.register
def _(_formula: Examples) -> str:
    return f"steps {_TIMES} batch size"


@formula_words.register
def _(formula: RateDrop) -> str:
    drop = f"{formula.epochs} {_TIMES} ({formula.examples_per_epoch:,} ÷ batch size, whole steps)"
    return drop if formula.name == "rate-drop" else f"steps ÷ ({drop})"


@formula_words.register
def _(formula: Product) -> str:
    text = f" {_TIMES} ".join(map(_factor, formula.factors))
    return text + "".join(f" ÷ {_factor(one)}" for one in formula.divisors)


@formula_words.register
def _(_formula: NotGiven) -> str:
    return "the source does not say what it follows from"


def _worked(epochs: int | None) -> str:
    if epochs is None:
        return "time of all work"
    return "time of one epoch" if epochs == 1 else f"time of {epochs} epochs"


def _factor(factor: Factor) -> str:
    return f"{plain(factor.value)} ({factor.label})"
