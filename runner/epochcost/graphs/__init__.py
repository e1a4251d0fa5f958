"""Facts about ONNX graphs that costs need: arithmetic, quantised weights, weightless files."""
