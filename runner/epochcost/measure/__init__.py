"""Timing one trial in a fresh process: session, binding, sampling, proof of placement, machine.

``trial.run_trial`` is the entry; which trials there are, and what becomes of a measurement, is
decided above; ``ceilings`` alone keeps what it finds.
"""
