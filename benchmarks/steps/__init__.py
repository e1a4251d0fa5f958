"""Training steps of ours and of others, side by side: see benchmarks/training_step.py.

``prepare`` writes a case as files that need nothing but NumPy and onnx to read. Each contender runs
in an environment and a process of its own (``worker``), ``rounds`` lets them take turns,
``records`` keeps what was measured, and ``table`` writes it up.
"""
