"""Predict times of language models from published times and from formulas, called laws."""
