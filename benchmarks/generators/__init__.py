"""Engines that generate with the same decoder: ours, onnxruntime-genai's and transformers'."""
