"""Measure a trial in a new process: step times, placement of nodes, and state of the machine.

``trial`` starts the process. Callers store the measurements, except those of ``ceilings``.
"""
