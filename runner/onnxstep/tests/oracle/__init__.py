"""ONNX's backend test suite as a reference for differentiation.

Each node test of the suite is differentiated and compared with finite differences.
docs/operators.md has the results.
"""
