# /// script
# requires-python = ">=3.11"
# dependencies = ["epochcost[run]", "torch==2.13.0"]
# ///
"""The gradients of every committed model against PyTorch's in float64.

    python benchmarks/gradients_against_pytorch.py [--batch 16] [--provider cuda] [--worst]

The same weights, inputs and cotangents go through `vjp_graph` on ONNX Runtime in float32 and
through the PyTorch module in float64. Prints the relative error in norm of each gradient, or with
--worst a Markdown row with each model's largest error. Float32 rounding is about 1e-7. Random
weights avoid ties of pooling and ReLU.
"""

from __future__ import annotations

import argparse
import operator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from steps.pytorch import network

from epochcost.measure.session import open_session
from epochcost.specs.loader import load_catalogue
from epochcost.specs.study import Provider
from onnxstep import vjp_graph
from onnxstep.graphs.loading import load_model
from onnxstep.graphs.parameters import materialise, parameters

ROOT = Path.cwd()


def errors(model_id: str, batch_size: int, provider: Provider = "cpu") -> dict[str, float]:
    """Norm of the difference over the norm of PyTorch's gradient, by parameter."""
    catalogue = load_catalogue(ROOT)
    declared = catalogue.model(model_id)
    model = load_model(catalogue.graph_path(declared))
    wrt = [parameter.name for parameter in parameters(model)]
    values = materialise(model)
    module, example = network(Path(declared.graph).stem)
    module.eval().double()
    module.load_state_dict(
        {n: torch.from_numpy(v).double() for n, v in values.items()}, strict=False
    )
    torch.manual_seed(0)
    fed = drawn_inputs(declared, example, batch_size)
    logits = module(*(value.double() if value.is_floating_point() else value for value in fed))
    cotangent = torch.randn_like(logits).float()
    logits.backward(cotangent.double())
    graph = vjp_graph(model, wrt, {"batch": batch_size}).SerializeToString()
    session = open_session(graph, provider)
    data = {entry.name: value.numpy() for entry, value in zip(declared.inputs, fed, strict=True)}
    feeds = {**values, **data, "logits_cotangent": cotangent.numpy()}
    ours = session.run([f"{name}_gradient" for name in wrt], feeds)
    theirs = dict(module.named_parameters())
    return {
        name: _relative(gradient, theirs[name].grad.numpy())
        for name, gradient in zip(wrt, ours, strict=True)
    }


def drawn_inputs(model: Any, example: Any, batch_size: int) -> list[torch.Tensor]:
    """A batch of each input, within the range of the spec."""
    batch = []
    for declared in model.inputs:
        value = example[declared.name]
        shape, (low, high) = (batch_size, *value.shape[1:]), map(float, declared.range)
        drawn = torch.rand(shape, dtype=torch.float64) * (high - low) + low
        batch.append(drawn.to(value.dtype))
    return batch


def _relative(ours: np.ndarray, theirs: np.ndarray) -> float:
    return float(np.linalg.norm(ours - theirs) / np.linalg.norm(theirs))


def main() -> None:
    """Print a line for each parameter."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=["mnist-mlp", "mnist-cnn"])
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--provider", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--worst", action="store_true")
    options = parser.parse_args()
    for model_id in options.models:
        by_name = errors(model_id, options.batch, options.provider)
        if options.worst:
            name, worst = max(by_name.items(), key=operator.itemgetter(1))
            print(f"| {model_id} | {options.batch} | {len(by_name)} | {worst:.1e} | {name} |")
            continue
        for name, error in by_name.items():
            print(f"{model_id:12} {name:16} {error:.1e}")


if __name__ == "__main__":
    main()
