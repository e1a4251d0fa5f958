"""What a step trains, what it leaves as it is and why, and what the file leaves in doubt."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import onnx

from epochcost.graphs.doubts import doubts
from epochcost.graphs.parameters import parameters, untrained


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
    model: onnx.ModelProto, trained: Collection[str], frozen: Collection[str]
) -> TrainedSet:
    """The account of a step that trains these parameters, and whose caller froze those."""
    left = tuple(_left_out(model, trained, frozen))
    reasons = {tensor.name: tensor.reason for tensor in left}
    return TrainedSet(tuple(trained), left, tuple(doubts(model, trained, reasons)))


def _left_out(
    model: onnx.ModelProto, trained: Collection[str], frozen: Collection[str]
) -> Iterator[LeftOut]:
    shapes = {tensor.name: tensor.dims for tensor in model.graph.initializer}
    for name, reason in untrained(model).items():
        yield LeftOut(name, math.prod(shapes[name]), reason)
    for parameter in parameters(model):
        if parameter.name not in trained:
            reason = "frozen" if parameter.name in frozen else "the loss does not depend on it"
            yield LeftOut(parameter.name, math.prod(parameter.shape), reason)
