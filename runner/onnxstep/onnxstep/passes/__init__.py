"""The passes that transform a graph, in the order in which they run.

``prepare`` runs before a model is copied into a Builder, and ``lower`` afterwards. Once the
backward pass is built, ``recompute`` saves memory and ``close_model`` removes unused nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial

import onnx

from onnxstep.forward import Forward
from onnxstep.graphs.importer_quirks import without_zero_biases
from onnxstep.hashed_dropout import counted_runs
from onnxstep.passes.canonicalize import bind, canonicalize, expand
from onnxstep.passes.lowering import replace_slow_nodes
from onnxstep.passes.training_mode import train_on_batches

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
    forward: Forward,
    carried: Collection[str],
    frozen: Collection[str],
    resumable: bool = False,
) -> Forward:
    """Convert BatchNormalization to training form, and replace slow nodes by faster nodes.

    The arguments are those of ``train_on_batches`` and ``replace_slow_nodes``.
    """
    trained = train_on_batches(forward, carried, frozen)
    replace_slow_nodes(trained.op, resumable)
    return replace(trained, moves=(*trained.moves, *counted_runs(trained.op)))
