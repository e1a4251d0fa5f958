"""Published prices: import of price lists, checks for wrong prices, and traces of spot prices."""
