"""Training steps of epochcost and of other frameworks: see benchmarks/training_step.py.

``prepare`` writes a case as files that need only NumPy and onnx to read. A contender is one of the
compared programs; each runs in a separate environment and process (``worker``). ``rounds`` lets the
contenders take turns, ``records`` stores the measurements, and ``table`` renders them.
"""
