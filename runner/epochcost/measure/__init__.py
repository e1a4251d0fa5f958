"""Time one trial in a fresh process: session, binding, sampling, proof of placement, machine.

``trial.run_trial`` is the entry point. Callers choose the trials and store the measurements; only
``ceilings`` stores its own results.
"""
