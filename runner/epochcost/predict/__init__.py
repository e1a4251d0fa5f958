"""Predict rates on machines that we have not measured, from rates that others published.

Rates that were published for the same software on two machines show how much faster one of them is.
A workload's rate on another machine is predicted from such ratios, specs of devices, and operations
and bytes of graphs. Each prediction has an interval.
"""
