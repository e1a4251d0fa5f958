"""Charts: turn typed rows into Vega-Lite specs and static SVG pictures."""
