"""Our training steps and those of other frameworks: see benchmarks/training_step.py.

``prepare`` writes a case as files that need only NumPy and onnx to read. Each contender runs in its
own environment and process (``worker``). ``rounds`` lets them take turns, ``records`` stores the
measurements, and ``table`` renders them.
"""
