"""Predict rates on machines that we have not measured, from rates that others published.

Published rates of one software show how much faster one machine is than another. A workload's rate
on another machine is predicted from such ratios, specs of devices, and operations and bytes of
graphs. Each prediction has an interval.
"""
