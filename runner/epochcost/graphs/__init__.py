"""Facts about ONNX graphs that costs need: operations, and weights that are quantised or absent."""
