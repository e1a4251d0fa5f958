"""Measure one study on many machines, through engines that people already run.

``engine`` is the seam: what a launch asks of an engine. ``ssh``, ``slurm`` and ``sky`` are the
engines; ``launch`` owns the cells, the money and the order. The command that runs on a target is
`epochcost run`; its result files are the only truth about a cell.
"""
