"""Measure a trial in a new process: its step times, where its nodes ran, and the machine.

``trial.run_trial`` is the entry point. Callers choose the trials and store the measurements, except
that ``ceilings`` stores its own results.
"""
