"""Prices that others publish: tables of price lists, and traces of spot machines.

importing ─ tables    rows of a provider's price list
─ matching  which machine of the catalogue a row is about
traces                what zones of spot machines asked and had, over time
"""
