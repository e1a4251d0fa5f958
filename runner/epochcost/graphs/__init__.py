"""Properties of ONNX graphs that decide costs: operations, memory, and how weights are stored."""
