"""Predict rates on machines that we have not measured, from rates that others published.

Predictions also use device specs, and operations and bytes of graphs. All have intervals.
"""
