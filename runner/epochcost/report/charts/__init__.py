"""Charts: turn typed rows into Altair specs, static SVG and figures."""
