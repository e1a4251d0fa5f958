"""Predict times of language models from published figures and laws of serving and training."""
