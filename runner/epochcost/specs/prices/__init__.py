"""Prices that others publish: tables of price lists, and traces of spot machines.

importing ─ tables    rows of a provider's price list
traces                what zones of spot machines asked and had, over time
"""
