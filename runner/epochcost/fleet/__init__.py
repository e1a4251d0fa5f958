"""Measure one study on many machines, through engines (ssh, Slurm, SkyPilot) that people run.

``engine`` declares the calls that a launch makes. ``ssh``, ``slurm`` and ``sky`` are the engines;
``launch`` and ``station`` decide the order of the cells, and ``ledger`` counts the money. The
command that runs on a target is `epochcost run`; only its result files say that a cell was
measured.
"""
