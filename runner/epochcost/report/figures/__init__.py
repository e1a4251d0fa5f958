"""Figures: which rows are drawn, in which words, with which table."""
