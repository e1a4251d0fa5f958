"""Run trials on this machine: build and measure them, store their results, and resume runs."""
