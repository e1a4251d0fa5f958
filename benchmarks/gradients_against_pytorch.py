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
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import torch
from steps.pytorch import network

from epochcost.measure.session import open_session
from epochcost.specs.loader import load_catalogue
from epochcost.specs.model import Model
from epochcost.specs.study import Provider
from onnxstep import vjp_graph
from onnxstep.graphs.loading import load_model
from onnxstep.graphs.parameters import materialise, parameters

ROOT = Path.cwd()


def errors(model_id: str, batch_size: int, provider: Provider = "cpu") -> dict[str, float]:
    """Norm of the gradients' difference over the norm of PyTorch's gradient, by parameter."""
    catalogue = load_catalogue(ROOT)
    declared = catalogue.model(model_id)
    model = load_model(catalogue.graph_path(declared))
    wrt = [parameter.name for parameter in parameters(model)]
    values = materialise(model)
    module, _ = network(Path(declared.graph).stem)
    module.eval().double()
    module.load_state_dict(
        {n: torch.from_numpy(v).double() for n, v in values.items()}, strict=False
    )
    torch.manual_seed(0)
    sizes = {**declared.dimensions, "batch": batch_size}
    inputs = [value for value in model.graph.input if value.name not in values]
    fed = drawn_inputs(declared, inputs, sizes)
    results = module(*(v.double() if v.is_floating_point() else v for v in fed.values()))
    results = [results] if isinstance(results, torch.Tensor) else [*results]
    cotangents = [torch.randn_like(result).float() for result in results]
    torch.autograd.backward(results, [cotangent.double() for cotangent in cotangents])
    graph = vjp_graph(model, wrt, sizes).SerializeToString()
    session = open_session(graph, provider)
    names = [f"{output.name}_cotangent" for output in model.graph.output]
    data = dict(zip([*fed, *names], [*fed.values(), *cotangents], strict=True))
    feeds = {**values, **{name: value.numpy() for name, value in data.items()}}
    ours = session.run([f"{name}_gradient" for name in wrt], feeds)
    theirs = dict(module.named_parameters())
    expected = {name: theirs[name].grad.numpy() for name in wrt}
    # The gradient of a key's bias is 0, as a softmax does not change if all its inputs do.
    least = 1e-5 * max(map(np.linalg.norm, expected.values()))
    return {
        name: float(np.linalg.norm(gradient - expected[name]))
        / max(float(np.linalg.norm(expected[name])), least)
        for name, gradient in zip(wrt, ours, strict=True)
    }


def drawn_inputs(
    declared: Model, inputs: Sequence[onnx.ValueInfoProto], sizes: Mapping[str, int]
) -> dict[str, torch.Tensor]:
    """Data inputs drawn from the spec's ranges, and states drawn from a normal distribution."""
    ranges = {entry.name: map(float, entry.range) for entry in declared.inputs}
    drawn = {}
    for value in inputs:
        kind = value.type.tensor_type
        shape = [dim.dim_value or sizes[dim.dim_param] for dim in kind.shape.dim]
        if value.name in ranges:
            low, high = ranges[value.name]
            data = torch.rand(shape, dtype=torch.float64) * (high - low) + low
        else:
            data = torch.randn(shape)
        integers = kind.elem_type == onnx.TensorProto.INT64
        drawn[value.name] = data.long() if integers else data.float()
    return drawn


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
            # NaN counts as the largest error, unlike in a comparison of numbers.
            name, worst = max(by_name.items(), key=lambda item: (math.isnan(item[1]), item[1]))
            print(f"| {model_id} | {options.batch} | {len(by_name)} | {worst:.1e} | {name} |")
            continue
        for name, error in by_name.items():
            print(f"{model_id:12} {name:16} {error:.1e}")


if __name__ == "__main__":
    main()
