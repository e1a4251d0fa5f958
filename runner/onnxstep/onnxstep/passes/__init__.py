"""The passes that transform a graph, in the order in which they run.

``prepare`` converts a model into the form that the gradient rules and the Builder need. ``lower``
replaces slow nodes, and BatchNormalization in training, by other nodes, which run instead. The list
``Forward.nodes`` has a single node with the same result in their place, from which gradients are
derived. After the backward pass is built, ``recompute`` changes the graph to save memory.
``close_model`` then removes unused nodes.
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

    Every shape is static. ONNX's function bodies replace operators that the registry does not list.
    ``mode`` converts to training or inference form, ``fused`` to a provider's operators, and
    ``rounded`` to mixed precision. ``varying`` names stored tensors that are trained or
    differentiated, and so must not be folded into constants. Raises ModelError for a dimension
    without a size, and if onnx cannot convert to opset 16.
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

    ``carried`` names the running statistics that a step passes to the next step. A
    BatchNormalization with a statistic in ``frozen`` keeps its inference form. With ``resumable``,
    Dropout stays unless the step is for CUDA, so that a resumed training draws the same masks as an
    uninterrupted one.
    """
    trained = train_on_batches(forward, carried, frozen)
    replace_slow_nodes(trained.op, resumable)
    return replace(trained, moves=(*trained.moves, *counted_runs(trained.op)))
