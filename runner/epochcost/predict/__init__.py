"""Predict rates on machines that we have not measured, from rates that others published.

A published rate tells how machines compare under one software. From such ratios, the specs of
devices and the demands of graphs follows a rate on another machine with an interval, or the reason
why there is none. Prices and pages belong to ``cost``, ``analysis`` and ``report``.
"""
