"""Turn times into money: usage, bills whose lines sum to the total, and the cheapest choice.

Amounts are Decimal (floats in `market` and `replay`), and functions are pure. If a price is
missing, the cost is an `Unpriced` with the reason, never zero.
"""

from epochcost.cost.bill import quote, quote_at_rate, quote_quantile, share
from epochcost.cost.compare import Candidate, cheapest, frontier
from epochcost.cost.estimate import Cost, Estimate, MachineTime, Time, Unpriced
from epochcost.cost.lines import Line, Quote, Usage

__all__ = [
    "Candidate",
    "Cost",
    "Estimate",
    "Line",
    "MachineTime",
    "Quote",
    "Time",
    "Unpriced",
    "Usage",
    "cheapest",
    "frontier",
    "quote",
    "quote_at_rate",
    "quote_quantile",
    "share",
]
