"""ONNX graphs: load files safely, bind symbolic dimensions, find parameters and first values.

Needs onnx and numpy only. Nothing here runs or differentiates a graph.
"""
