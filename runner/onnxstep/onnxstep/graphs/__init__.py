"""ONNX graphs: load files safely, bind symbolic dimensions, find parameters and first values.

onnx and numpy only; nothing here runs a graph or differentiates it.
"""
