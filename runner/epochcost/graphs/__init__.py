"""Facts of ONNX graphs for costs: arithmetic, weights of few bits, weightless files."""
