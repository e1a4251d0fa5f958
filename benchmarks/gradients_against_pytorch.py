# /// script
# requires-python = ">=3.11"
# dependencies = ["epochcost[run]", "torch==2.13.0"]
# ///
"""The gradients of every committed model against PyTorch's in float64.

    python benchmarks/gradients_against_pytorch.py [--batch 16]

The same weights, inputs and cotangents go through `vjp_graph` on ONNX Runtime in float32 and
through the PyTorch module in float64. Printed is the relative error in norm of each gradient;
float32 rounding is about 1e-7, and ties of pooling and ReLU are avoided by random weights.
"""

from __future__ import annotations

import argparse

import numpy as np
import onnxruntime
import torch
from training_step import ROOT, torch_module

from epochcost.autodiff import vjp_graph
from epochcost.graphs.loading import load_model
from epochcost.graphs.parameters import data_inputs, materialise, parameters
from epochcost.specs.loader import load_catalogue


def errors(model_id: str, batch_size: int) -> dict[str, float]:
    """By parameter, the norm of the difference over the norm of PyTorch's gradient."""
    catalogue = load_catalogue(ROOT)
    model = load_model(catalogue.graph_path(catalogue.model(model_id)))
    wrt = [parameter.name for parameter in parameters(model)]
    values = materialise(model)
    module = torch_module(model_id).eval().double()
    module.load_state_dict({name: torch.from_numpy(values[name]).double() for name in wrt})
    rng = np.random.default_rng(0)
    images = rng.random((batch_size, *module.example_shape), dtype=np.float32)
    logits = module(torch.from_numpy(images).double())
    cotangent = rng.standard_normal(logits.shape).astype(np.float32)
    logits.backward(torch.from_numpy(cotangent).double())
    session = onnxruntime.InferenceSession(
        vjp_graph(model, wrt, {"batch": batch_size}).SerializeToString(),
        providers=["CPUExecutionProvider"],
    )
    (data,) = data_inputs(model)
    feeds = {**values, data.name: images, "logits_cotangent": cotangent}
    ours = session.run([f"{name}_gradient" for name in wrt], feeds)
    theirs = dict(module.named_parameters())
    return {
        name: _relative(gradient, theirs[name].grad.numpy())
        for name, gradient in zip(wrt, ours, strict=True)
    }


def _relative(ours: np.ndarray, theirs: np.ndarray) -> float:
    return float(np.linalg.norm(ours - theirs) / np.linalg.norm(theirs))


def main() -> None:
    """Print a line a parameter."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=["mnist-mlp", "mnist-cnn"])
    parser.add_argument("--batch", type=int, default=16)
    options = parser.parse_args()
    for model_id in options.models:
        for name, error in errors(model_id, options.batch).items():
            print(f"{model_id:12} {name:16} {error:.1e}")


if __name__ == "__main__":
    main()
