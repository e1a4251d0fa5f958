"""Exporting a PyTorch module to a weightless ONNX file, with its line in manifest.toml.

The exporters beside this module import it by path; their PEP 723 headers name what it needs. It
owns the call of PyTorch's exporter and the proof that the file computes what the module computes.
The form of the files is owned by ``weightless``, their list by ``manifest``.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import manifest
import numpy as np
import onnx
import onnx.reference
import torch
import weightless
from torch import nn

if TYPE_CHECKING:
    from onnxscript import ir

# What an exporter's function networks() returns: by the name of a file, what makes the module and
# example values of its inputs. Benchmarks build the module of a file by it.
Networks = Mapping[str, tuple[Callable[[], nn.Module], Mapping[str, torch.Tensor]]]
FOLDER = Path(__file__).parent
# ONNX Runtime 1.31.1 has CPU kernels for much newer opsets, but its CUDA provider takes a node only
# at the very version a kernel is registered for, and MaxPool (22), ConvTranspose (22), Pad (19) and
# others have none: their nodes would run on the CPU. Opset 18 is the newest before those changes
# and the one that PyTorch's exporter writes without a version conversion.
OPSET = 18
_TOLERANCE = 1e-5  # of an output's largest element, or of 1, in float32


def export(
    module: nn.Module,
    name: str,
    inputs: Mapping[str, torch.Tensor],
    *,
    outputs: Sequence[str] = ("logits",),
    dynamic: Mapping[str, Mapping[int, str]] | None = None,
    initial: Mapping[str, Mapping[str, str | float]] | None = None,
    folder: Path = FOLDER,
) -> Path:
    """Write ``<name>.onnx`` and its manifest entry; returns its path.

    ``inputs`` are example values of the graph's inputs by name, in the order of ``forward``, with a
    batch of at least 2. ``dynamic`` names the symbolic dimensions by input and axis (default: axis
    0 of each is "batch"). ``initial`` gives, by shell pattern of parameter names, distributions
    that replace the defaults of ``weightless``. A module on the meta device is exported without
    its weights ever taking memory, and its outputs are not compared.
    Raises AssertionError when the file and the module compute different outputs, and when the
    exporter fixed a symbolic dimension.
    """
    symbolic = dynamic or {key: {0: "batch"} for key in inputs}
    trainable = [name for name, _ in module.named_parameters()]
    program = _export(module, inputs, outputs, symbolic)
    model = weightless.weightless(_hollow(program, trainable), name, trainable, initial or {})
    _check_dimensions(model, symbolic)
    if not _abstract(module):
        _check_forward(module, model, inputs, outputs)
    path = folder / f"{name}.onnx"
    weightless.save(model, path)
    tools = ("torch", "onnx", "onnxscript")
    manifest.record(path, model, Path(sys.argv[0]).name, tools)
    return path


def _abstract(module: nn.Module) -> bool:
    return any(parameter.is_meta for parameter in module.parameters())


def _export(
    module: nn.Module,
    inputs: Mapping[str, torch.Tensor],
    outputs: Sequence[str],
    dynamic: Mapping[str, Mapping[int, str]],
) -> ir.Model:
    """The module in training mode, because the exporter drops Dropout in evaluation mode.

    ``optimize=False``: the optimizer renames and merges initializers, which are our parameters.
    """
    warnings.filterwarnings("ignore", message="Exporting a model while it is in training mode")
    dims = {
        symbol: torch.export.Dim(symbol) for axes in dynamic.values() for symbol in axes.values()
    }
    shapes = tuple(
        {axis: dims[symbol] for axis, symbol in dynamic.get(name, {}).items()} for name in inputs
    )
    device = next(module.parameters()).device
    program = torch.onnx.export(
        module.train(),
        tuple(value.to(device) for value in inputs.values()),
        dynamo=True,
        optimize=False,
        verbose=False,
        opset_version=OPSET,
        input_names=list(inputs),
        output_names=list(outputs),
        dynamic_shapes=shapes,
    )
    assert program is not None
    return program.model


def _hollow(model: ir.Model, trainable: Collection[str]) -> onnx.ModelProto:
    """The model as a message whose trained initializers have a type and a shape, but no values.

    So a module on the meta device, which has no values, takes the same path as every other.
    """
    taken = [
        model.graph.initializers.pop(name)
        for name in list(model.graph.initializers)
        if name in trainable
    ]
    from onnxscript import ir  # noqa: PLC0415 - benchmarks build modules where it is not installed

    proto = ir.to_proto(model)
    proto.graph.initializer.extend(
        onnx.TensorProto(name=value.name, data_type=value.dtype, dims=value.shape.numpy())
        for value in taken
    )
    return proto


def _check_dimensions(model: onnx.ModelProto, symbolic: Mapping[str, Mapping[int, str]]) -> None:
    """Refuse exports in which the exporter fixed a size to the example's."""
    for value in model.graph.input:
        for axis, name in symbolic.get(value.name, {}).items():
            dim = value.type.tensor_type.shape.dim[axis]
            assert dim.dim_param == name, f"{value.name}[{axis}] became {dim}"


def _check_forward(
    module: nn.Module,
    model: onnx.ModelProto,
    inputs: Mapping[str, torch.Tensor],
    outputs: Sequence[str],
) -> None:
    """Same weights, same inputs: the file's outputs are the module's in evaluation mode."""
    with torch.no_grad():
        found = module.eval()(*inputs.values())
    expected = [found] if isinstance(found, torch.Tensor) else list(found)
    fed = {value.name for value in model.graph.input}
    weights = {name: v.numpy() for name, v in module.state_dict().items() if name in fed}
    data = {name: value.numpy() for name, value in inputs.items()}
    evaluator = onnx.reference.ReferenceEvaluator(model)
    answers = evaluator.run(list(outputs), {**data, **weights})
    for answer, wanted in zip(answers, expected, strict=True):
        allowed = _TOLERANCE * max(1.0, float(wanted.abs().max()))
        np.testing.assert_allclose(answer, wanted.numpy(), rtol=_TOLERANCE, atol=allowed)
