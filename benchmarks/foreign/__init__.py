"""Strangers' ONNX files through the differentiator: see benchmarks/foreign_files.py.

``pool`` gives each file a process with limits, in which ``examine`` takes it through its stages;
``points`` finds inputs that a file runs with, ``slopes`` holds its gradients to finite differences,
and ``answers`` owns the classes of the table and the criterion of a refusal that helps.
"""
