"""Charts: plain points in, Altair specs, static SVG and figures out. Knows no results or specs."""
