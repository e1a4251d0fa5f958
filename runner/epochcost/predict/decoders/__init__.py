"""Predictions of language models from their form: rows of others, laws of serving and training."""
