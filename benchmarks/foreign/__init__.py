"""Run other projects' files through the differentiator: see benchmarks/foreign_files.py.

``pool`` runs each file in a process with limits, where ``examine`` takes it through its stages.
``points`` finds valid inputs, ``slopes`` compares gradients with finite differences, and
``answers`` defines the classes of the table and the criterion for a helpful refusal.
"""
