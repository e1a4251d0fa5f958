"""Account of what a step trains, leaves as it is, and why; and the doubts about the file."""

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
    """The names of the trained parameters; the rest with its reasons; doubts as sentences."""

    trained: tuple[str, ...]
    left_out: tuple[LeftOut, ...]
    doubts: tuple[str, ...]


def trained_set(
    model: onnx.ModelProto,
    held: Iterable[Parameter],
    untrained: Mapping[str, str],
    trained: Collection[str],
    frozen: Collection[str],
) -> TrainedSet:
    """The account of a step that trains some of the parameters, and whose caller froze others.

    ``held`` are all ``parameters`` of the model, ``untrained`` is what the function of this name
    says of it: both follow its whole graph, so that a caller asks once. A scale of codes counts as
    the weights that they stand for.
    """
    sizes = {tensor.name: math.prod(tensor.dims) for tensor in model.graph.initializer}
    sizes |= weights_of_scales(model)
    left_out = [LeftOut(name, sizes[name], reason) for name, reason in untrained.items()]
    for parameter in held:
        if parameter.name not in trained:
            reason = "frozen" if parameter.name in frozen else "the loss does not depend on it"
            left_out.append(LeftOut(parameter.name, math.prod(parameter.shape), reason))
    reasons = {tensor.name: tensor.reason for tensor in left_out}
    return TrainedSet(tuple(trained), tuple(left_out), tuple(doubts(model, trained, reasons)))
