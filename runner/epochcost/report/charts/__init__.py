"""Charts: typed rows in, Altair specs, static SVG and figures out."""
