"""Facts of ONNX graphs for costs: arithmetic, few bits per weight, weightless files."""
