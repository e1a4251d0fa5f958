"""Run trials on this machine: build, measure, store and resume them."""
