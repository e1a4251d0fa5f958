"""Predict rates on machines that we have not measured, from rates that others published.

Published rates of one software show how much faster one machine is than another. From such ratios,
the specs of devices, and the operations and bytes of graphs, this package predicts the rate on
another machine with an interval, or says why it cannot. Prices and pages belong to ``cost``,
``analysis`` and ``report``.
"""
