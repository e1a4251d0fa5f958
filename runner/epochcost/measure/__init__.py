"""Timing one trial in a fresh process: session, binding, sampling, proof of placement, machine.

``trial.run_trial`` is the entry; callers choose the trials and store the measurements; ``ceilings``
alone stores its own results.
"""
