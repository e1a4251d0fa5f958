"""Turn times into money: usage, bills whose lines sum to the total, and the cheapest choice.

Amounts are Decimal (floats in `market` and `replay`), and functions are pure. If a price is
missing, the cost is an `Unpriced` with the reason, never zero.
"""
