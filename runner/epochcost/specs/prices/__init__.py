"""Prices that others publish: tables of price lists become specs, and CSV files histories.

importing ─ tables    rows of a provider's price list
─ matching  which machine of the catalogue a row is about
history               a CSV file of spot prices beside a spec
"""
