"""Charts: from typed rows to Altair specs, static SVG and figures."""
