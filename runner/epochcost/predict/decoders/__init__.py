"""Predict times of language models from published figures and formulas (laws) for the times."""
