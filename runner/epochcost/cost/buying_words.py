"""The answers to "rent or buy" in words, the same on the command line and in the report."""

from __future__ import annotations

from epochcost.cost.break_even import BreakEven, Payback


def buying_words(found: BreakEven) -> str:
    """When buying is cheaper, as the end of a sentence."""
    if found.hours is None:
        return "at any use" if found.outcome == "always" else "at no use of a month"
    hours = f"{found.hours:,.1f}" if found.hours < 10 else f"{found.hours:,.0f}"
    return f"{found.outcome} {hours} hours a month"


def payback_words(found: Payback) -> str:
    """After which time the purchase has paid."""
    if found.years is None:
        return "with its resale only" if found.by_resale else "not in its life"
    return f"after {found.years:.1f} years"
