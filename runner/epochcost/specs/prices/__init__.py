"""Published prices: import of price lists, checks for wrong prices, and traces of spot prices.

- `tables`: rows of a provider's price list.
- `importing`: comparison of these rows with the catalogue.
- `new_specs`: specs of new prices.
- `doubts`: implausible prices of rented machines.
- `api_table`: tables of token prices, and implausible token prices.
- `traces`: prices and availability of spot machines over time, by zone.
"""
