"""Report of the tensors that a step trains and does not train, with reasons and doubts."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import onnx

from onnxstep.graphs.doubts import doubts
from onnxstep.graphs.parameters import Parameter, weights_of_scales


@dataclass(frozen=True)
class LeftOut:
    """A float tensor of the model, of ``size`` numbers, that a step does not train."""

    name: str
    size: int
    reason: str


@dataclass(frozen=True)
class TrainedSet:
    """Names of the trained parameters, untrained tensors with reasons, doubts as sentences."""

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
    """Report a step's ``trained`` parameters, and all others as ``frozen`` or unused.

    ``listed`` and ``untrained`` are the model's ``parameters`` and ``untrained``, computed once by
    the caller. The scales of a quantized weight count as its stored codes.
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
