"""Measure studies on many machines through engines: ssh, Slurm or SkyPilot.

A target is a machine, or a cluster of equal machines. A cell is a trial, or a sweep of batch sizes,
on a kind of machine. A cell counts as measured only if the project has its complete result file.
"""
