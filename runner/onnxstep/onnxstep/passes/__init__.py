"""The passes that transform a graph, in the order in which they run.

``prepare`` runs before a model is copied into a Builder, and ``lower`` afterwards. Once the
backward pass is built, ``recompute`` saves memory and ``close_model`` removes unused nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial

import onnx
from onnx import helper

from onnxstep import blocked_convolution, hashed_dropout, unrolled_lstm
from onnxstep.builder import Builder, Value
from onnxstep.forward import Forward
from onnxstep.graphs.importer_quirks import without_zero_biases
from onnxstep.graphs.nodes import is_standard
from onnxstep.passes.canonicalize import bind, canonicalize, expand
from onnxstep.passes.training_mode import train_on_batches
from onnxstep.registry import Node

ModelPass = Callable[[onnx.ModelProto], onnx.ModelProto]


def prepare(
    model: onnx.ModelProto,
    *,
    mode: ModelPass | None = None,
    dimensions: Mapping[str, int] | None = None,
    varying: Collection[str] = (),
    fused: ModelPass | None = None,
    rounded: ModelPass | None = None,
) -> onnx.ModelProto:
    """Copy of a model in the form that the gradient rules and the Builder need.

    ``mode`` converts to training or inference form, ``fused`` to a provider's operators, and
    ``rounded`` to mixed precision. ``varying`` names stored tensors that must not become constants.
    Raises ModelError for a dimension without a size, and if onnx cannot convert to opset 16.
    """
    binding = partial(bind, dimensions=dimensions or {}, varying=varying)
    for run in (canonicalize, mode, expand, binding, without_zero_biases, fused, rounded):
        model = run(model) if run else model
    return model


def lower(
    forward: Forward, carried: Collection[str], frozen: Collection[str], resumable: bool = False
) -> Forward:
    """Convert BatchNormalization to training form, and replace slow nodes by faster nodes.

    The arguments are those of ``train_on_batches`` and ``_replace_slow_nodes``.
    """
    trained = train_on_batches(forward, carried, frozen)
    _replace_slow_nodes(trained.op, resumable)
    return replace(trained, moves=(*trained.moves, *hashed_dropout.counted_runs(trained.op)))


# Each function emits the outputs of a node. An output is None if nothing reads it. If the function
# returns no outputs, the node stays.
_FASTER: Mapping[str, Callable[[Node], Sequence[Value | None]]] = {
    "Conv": blocked_convolution.forward,
    "LSTM": unrolled_lstm.unroll,
    "Dropout": hashed_dropout.forward,
}


def _replace_slow_nodes(op: Builder, resumable: bool) -> None:
    """Replace convolutions, LSTMs and Dropout in ``op`` if faster operators are available.

    ``resumable`` keeps Dropout except on CUDA, so that an interruption does not change the masks.
    """
    for op_type, emit in _FASTER.items():
        if resumable and op_type == "Dropout" and op.provider != "cuda":
            continue
        nodes, op.nodes = op.nodes, []
        for proto in nodes:
            outputs = emit(Node(op, proto, frozenset())) if is_standard(proto, op_type) else ()
            for name, value in zip(proto.output, outputs, strict=False):
                if name and value is not None:
                    op.append(helper.make_node("Identity", [value.name], [name]))
            if not outputs:
                op.nodes.append(proto)
