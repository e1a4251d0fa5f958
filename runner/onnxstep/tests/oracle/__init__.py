"""ONNX's own backend test suite as the oracle of differentiation.

Each of its node tests is differentiated and the result compared with finite differences. What
came out is published in docs/operators.md.
"""
