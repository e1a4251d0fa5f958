"""Trials to stored results on this machine: build, measure, store, resume."""
