"""ONNX graphs: load files safely, bind symbolic dimensions, and find parameters.

The modules need onnx and numpy only. They neither run nor differentiate a graph.
"""
