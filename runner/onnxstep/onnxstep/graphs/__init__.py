"""ONNX graphs: load files safely, bind symbolic dimensions, and find parameters."""
