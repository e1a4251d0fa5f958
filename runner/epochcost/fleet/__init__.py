"""Measure one study on many machines through engines: ssh, Slurm or SkyPilot.

``engine`` declares the methods that a launch calls, and implements them for ssh. ``slurm`` and
``sky`` are the other engines. A cell is a trial, or a sweep of batch sizes, on a kind of machine.
``launch`` and ``station`` decide the order of the cells, and ``ledger`` counts the money.
`epochcost run` runs on a target (a machine, or a cluster of equal machines). Only result files say
that a cell was measured.
"""
