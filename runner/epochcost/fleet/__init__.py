"""Measure one study on many machines, through engines that people already run.

``engine`` is the seam: the calls of a launch to an engine. ``ssh``, ``slurm`` and ``sky`` are the
engines; ``launch`` and ``station`` own the order of the cells, and ``ledger`` the money. The
command that runs on a target is `epochcost run`; its result files are the only truth about a cell.
"""
