"""Measure one study on many machines through engines: ssh, Slurm or SkyPilot.

A target is a machine, or a cluster of equal machines. A cell is a trial, or a sweep of batch sizes,
on a kind of machine. Only result files say that a cell was measured.
"""
