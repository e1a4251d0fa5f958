"""The passes over a graph, in the order in which they run.

``prepare`` brings a model into the form that rules and builder read. ``lower`` replaces some
executed nodes by faster ones; ``Forward.nodes`` keeps the originals for differentiation. After the
backward pass is built, ``recompute`` reduces memory. Closing the graph drops unused nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial

import onnx

from onnxstep.forward import Forward
from onnxstep.passes.canonicalize import bind, canonicalize, expand
from onnxstep.passes.lowering import convolve_in_blocks, unroll_lstms
from onnxstep.passes.training_mode import train_on_batches
from onnxstep.passes.upgrade import OLDEST_OPSET

ModelPass = Callable[[onnx.ModelProto], onnx.ModelProto]


def prepare(
    model: onnx.ModelProto,
    *,
    mode: ModelPass | None = None,
    dimensions: Mapping[str, int] | None = None,
    varying: Collection[str] = (),
    rounded: ModelPass | None = None,
    oldest_opset: int = OLDEST_OPSET,
) -> onnx.ModelProto:
    """A copy of a model that can be opened: every operator known, every shape static.

    ``mode`` puts it into training or inference form, ``rounded`` into mixed precision.
    ``dimensions`` gives symbolic dimensions their sizes; ``varying`` is as for ``bind_dimensions``.
    Raises ModelError if a dimension stays unbound, or if onnx cannot convert an opset before
    ``oldest_opset``.
    """
    binding = partial(bind, dimensions=dimensions or {}, varying=varying)
    plain = partial(canonicalize, oldest_opset=oldest_opset)
    for run in (plain, mode, expand, binding, rounded):
        model = run(model) if run else model
    return model


def lower(forward: Forward, carried: Collection[str], frozen: Collection[str]) -> Forward:
    """The forward pass as a step executes it.

    ``carried`` names tensors that can be running statistics, ``frozen`` those that stay unchanged;
    see ``train_on_batches``.
    """
    trained = train_on_batches(forward, carried, frozen)
    for run in (convolve_in_blocks, unroll_lstms):
        run(trained.op)
    return trained
