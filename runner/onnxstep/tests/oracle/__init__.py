"""ONNX's backend test suite as a reference for differentiation.

Each of its node tests is differentiated and compared with finite differences. docs/operators.md has
the results.
"""
