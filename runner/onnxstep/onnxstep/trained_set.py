"""Report which tensors a step trains, why it does not train the others, and what is doubtful."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import onnx

from onnxstep.graphs.doubts import doubts
from onnxstep.graphs.parameters import Parameter, weights_of_scales


@dataclass(frozen=True)
class LeftOut:
    """An untrained float tensor; the ``size`` of a quantization scale counts quantized values."""

    name: str
    size: int
    reason: str


@dataclass(frozen=True)
class TrainedSet:
    """Trained and untrained tensors; ``doubts`` are sentences about tensors of unclear role."""

    trained: tuple[str, ...]
    left_out: tuple[LeftOut, ...]
    doubts: tuple[str, ...]


def trained_set(
    model: onnx.ModelProto,
    listed: Iterable[Parameter],
    untrained: Mapping[str, str],
    trained: Collection[str],
    frozen: Collection[str],
) -> TrainedSet:
    """Report the parameters that a step trains, and why it does not train other tensors.

    ``listed`` are all parameters; ``untrained`` has the reasons for constants and buffers, by name.
    """
    sizes = {tensor.name: math.prod(tensor.dims) for tensor in model.graph.initializer}
    sizes |= weights_of_scales(model)
    left_out = [LeftOut(name, sizes[name], reason) for name, reason in untrained.items()]
    for parameter in listed:
        if parameter.name not in trained:
            reason = "frozen" if parameter.name in frozen else "the loss does not depend on it"
            left_out.append(LeftOut(parameter.name, math.prod(parameter.shape), reason))
    reasons = {tensor.name: tensor.reason for tensor in left_out}
    return TrainedSet(tuple(trained), tuple(left_out), tuple(doubts(model, trained, reasons)))
