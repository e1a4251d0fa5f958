"""Times become money: usage, billing, lines that sum to the total, and what is cheapest.

Everything is Decimal and pure. A missing price is a state (`Unpriced`), never zero.
"""

from epochcost.cost.bill import quote, quote_at, quote_at_rate, quotes_in_a_row, share
from epochcost.cost.claims import Agreement, CheckedRow, ClaimCheck, recompute
from epochcost.cost.compare import Candidate, cheapest, frontier, rivals
from epochcost.cost.estimate import (
    Cost,
    Estimate,
    Time,
    TrainingCosts,
    TrainingTime,
    Unpriced,
    billed_cost,
    million_inferences,
    prorated_cost,
    training_costs,
)
from epochcost.cost.lines import Line, Quote, Usage
from epochcost.cost.rounding import billed_seconds

__all__ = [
    "Agreement",
    "Candidate",
    "CheckedRow",
    "ClaimCheck",
    "Cost",
    "Estimate",
    "Line",
    "Quote",
    "Time",
    "TrainingCosts",
    "TrainingTime",
    "Unpriced",
    "Usage",
    "billed_cost",
    "billed_seconds",
    "cheapest",
    "frontier",
    "million_inferences",
    "prorated_cost",
    "quote",
    "quote_at",
    "quote_at_rate",
    "quotes_in_a_row",
    "recompute",
    "rivals",
    "share",
    "training_costs",
]
