"""Predict times of language models from their form: rows, and laws of serving and training."""
