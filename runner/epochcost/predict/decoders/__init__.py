"""Predict times of language models: published rows, and laws of serving and training."""
