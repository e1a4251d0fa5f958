"""Published prices: tables of price lists, and traces of spot machines.

imported_specs ─ importing ─ tables    rows of a provider's price list
doubts, api_doubts    prices that cannot be right
traces                prices and availability of zones of spot machines over time
"""
