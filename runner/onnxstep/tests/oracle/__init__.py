"""ONNX's backend test suite as a reference for differentiation.

The gradients of each test's model are compared with finite differences. docs/operators.md has the
results.
"""
