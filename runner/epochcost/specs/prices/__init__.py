"""Published prices: tables of price lists, and traces of spot machines.

importing ─ tables    rows of a provider's price list
traces                prices and availability of zones of spot machines over time
"""
