"""ONNX graphs: load files safely, bind symbolic dimensions, and find parameters.

The modules need only onnx and numpy. They neither run nor differentiate a graph.
"""
