"""Measure one study on many machines, reached by engines: ssh, Slurm or SkyPilot.

``engine`` declares the calls that a launch makes, and is the engine for ssh. ``slurm`` and ``sky``
are the other engines. A cell is a trial or a sweep on a kind of machine. ``launch`` and ``station``
decide the order of the cells, and ``ledger`` counts the money. `epochcost run` runs on a target (a
machine, or a cluster of such machines). Only result files say that a cell was measured.
"""
