"""Measure a trial in a new process: step times, placement of nodes, and state of the machine.

``trial.run_trial`` is the entry point. Callers choose the trials and store the measurements. Only
the module ``ceilings``, a benchmark of peak rates, stores its own results.
"""
