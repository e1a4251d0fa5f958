"""Published prices: import of price lists, checks for wrong prices, and traces of spot prices.

importing specs of new prices, from a provider's price list tables rows of price lists, for
importing doubts implausible prices of rented machines api_table tables of token prices, and
implausible token prices traces prices and availability of spot machines over time, by zone
"""
