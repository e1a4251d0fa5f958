"""Predict rates on machines that we have not measured, from rates that others published.

Published rates of one software show how much faster one machine is than another. From such ratios,
specs of devices, and operations and bytes of graphs, this package predicts a workload's rate on
another machine, with an interval. Prices and pages belong to ``cost``, ``analysis`` and ``report``.
"""
