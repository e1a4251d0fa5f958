"""What costs need to know of ONNX graphs: arithmetic, few bits per weight, weightless files."""
